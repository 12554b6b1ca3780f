"""What groups of Kafka's clients have committed: by whom, how far, and for how long."""
