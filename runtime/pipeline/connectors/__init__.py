"""Connectors: sources, transforms and sinks that a pipeline is made of."""
