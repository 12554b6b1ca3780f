"""The assignors of Kafka Connect's own protocol, exactly as Connect's classes behave."""
