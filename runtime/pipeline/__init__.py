"""The pipeline: what moves rows, from the engine to the batches of a task."""
