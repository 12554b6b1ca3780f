"""Kafka's wire protocol: frames, the served APIs, and the translation to fairlead's messages."""
