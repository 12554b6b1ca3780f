"""`source.type=dead-letter-topic`: the dead letters in a topic, as the rows that they once were."""
