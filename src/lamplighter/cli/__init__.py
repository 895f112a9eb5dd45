"""The command line: one file per command. Data goes to stdout, everything else to stderr."""
