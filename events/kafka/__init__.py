"""What is written down of Kafka's own clients, beside the records that all groups have."""
