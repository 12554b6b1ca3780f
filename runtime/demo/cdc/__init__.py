"""The demo of changes: a PostgreSQL table, its customers, and the copies of it that are checked."""
