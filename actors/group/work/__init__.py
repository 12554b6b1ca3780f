"""The group's work: connectors, their tasks, and the batches that count."""
