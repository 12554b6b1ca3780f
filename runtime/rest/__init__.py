"""The REST interface: Kafka Connect's, and what it can not say."""
