"""Connectors and tasks of Kafka Connect's own plugins, run by Kafka's classes in a plugin host."""
