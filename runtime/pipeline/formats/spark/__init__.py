"""What Spark's readers are given, and what they would take for another value than a text says."""
