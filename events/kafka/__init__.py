"""Records of Kafka's own clients, beside those that all groups have."""
