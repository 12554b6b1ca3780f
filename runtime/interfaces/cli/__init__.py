"""The command line: words of kubectl for a cluster of connectors."""
