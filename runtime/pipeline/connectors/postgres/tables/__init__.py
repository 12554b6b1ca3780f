"""Rows of tables: which tables there are, their snapshots in chunks, and what commits after it."""
