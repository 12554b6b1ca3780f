"""Group shards: many groups of Kafka clients in one process, with shared logs (PROTOCOL §15)."""
