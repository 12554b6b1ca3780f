"""The REST interface: Kafka Connect's API, and extensions for groups and workers."""
