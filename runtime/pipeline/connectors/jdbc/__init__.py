"""Databases by their JDBC drivers, through Spark: what has no type of its own."""
