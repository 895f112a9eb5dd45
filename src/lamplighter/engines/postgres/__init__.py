"""The engine for PostgreSQL 14 and newer: many machines, one store."""
