"""The engine for Redis 7.0 and Valkey 7.2, and newer: many machines, one store in memory."""
