"""Credentials and names of clients of the Kafka listener."""
