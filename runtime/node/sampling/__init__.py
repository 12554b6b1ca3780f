"""The process that reads a sample of the rows of a config, with a small JVM of its own."""
