"""The changes that the WAL has: decoded, grouped for batches, and converted to rows."""
