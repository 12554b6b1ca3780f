"""A worker's side of Kafka's classic protocol: its calls, its share of a round, and its lead."""
