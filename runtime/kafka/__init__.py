"""Kafka's wire: clients of a broker, whose groups are ours and whose data is the broker's."""
