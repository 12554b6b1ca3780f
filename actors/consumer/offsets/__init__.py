"""Committed offsets of groups of Kafka clients: permissions, storage and expiry."""
