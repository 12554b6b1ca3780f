"""Databases without a type of their own, by Spark's JDBC reader and writer."""
