"""The formats of rows: CSV, JSON, Avro, Parquet, and how their schemas may change."""
