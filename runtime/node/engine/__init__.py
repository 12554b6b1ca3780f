"""The process that owns the JVM which all workers of a node share."""
