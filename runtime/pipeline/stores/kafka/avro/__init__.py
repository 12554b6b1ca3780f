"""Avro with a schema registry, for keys and values of records."""
