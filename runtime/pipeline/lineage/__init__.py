"""Lineage of connectors, sent as OpenLineage events."""
