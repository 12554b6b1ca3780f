"""Builds the parts of a page: rows of connectors, workers, troubles, the verdict, epochs."""
