"""What SQL may ask for, found out with the JVM of an engine, or one for that alone."""
