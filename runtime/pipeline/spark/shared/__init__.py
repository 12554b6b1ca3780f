"""One JVM for all workers of a node: its owner, and the engine of a worker that shares it."""
