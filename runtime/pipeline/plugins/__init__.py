"""Kafka Connect's own plugins: their installation, and the JVM that runs them."""
