"""What connectors read and write, told as OpenLineage events."""
