"""The engine: Spark's JVM, its sessions and the jobs that tasks run on it."""
