"""The groups of Kafka's clients: many in one process, with one pair of logs (PROTOCOL §15)."""
