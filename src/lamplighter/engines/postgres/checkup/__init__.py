"""The check-up: facts read from the server, and one small function for each thing to judge."""
