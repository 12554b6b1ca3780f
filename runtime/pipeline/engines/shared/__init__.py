"""A JVM that all workers of a node share: the process that owns it, and the workers' engine."""
