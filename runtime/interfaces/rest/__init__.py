"""The REST interface: Kafka Connect's, and what it cannot say."""
