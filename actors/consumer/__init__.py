"""Groups of Kafka's consumers by KIP-848: partitions of topics are what members share out."""
