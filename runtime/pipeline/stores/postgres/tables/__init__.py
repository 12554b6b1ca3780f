"""Reads tables: the catalog, snapshots in chunks, and incremental windows after the snapshot."""
