"""Groups of Kafka's classic protocol: members join, one of them leads and assigns, all sync."""
