"""An engine with a JVM of its own: the process of the JVM, PySpark attached to it, its jobs."""
