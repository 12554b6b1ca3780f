"""Who a client of Kafka's protocol is, and what it may do."""
