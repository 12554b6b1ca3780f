"""Topics of Kafka as a sink."""
