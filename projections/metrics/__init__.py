"""The metrics of a node for Prometheus: from the logs, and from what processes count."""
