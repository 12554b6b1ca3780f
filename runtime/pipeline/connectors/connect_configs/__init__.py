"""Translates configs of Kafka Connect's well-known connectors into configs of pipelines."""
