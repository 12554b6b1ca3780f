"""Consumer groups of Kafka (KIP-848), whose members share the partitions of topics."""
