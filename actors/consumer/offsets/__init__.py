"""Offsets that groups of Kafka's clients commit: who may, what is kept, and for how long."""
