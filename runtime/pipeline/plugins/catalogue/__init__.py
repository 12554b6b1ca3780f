"""Which of Kafka Connect's plugins are installed: adding, scanning and listing them."""
