"""Transforms between source and sink: Connect's transforms, SQL, expectations, dedupe."""
