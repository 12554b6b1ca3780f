"""The plugins of Kafka Connect in a worker process."""
