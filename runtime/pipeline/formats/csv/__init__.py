"""CSV: the dialect of a config, scans of texts, types from a sample."""
