"""Connect's and Debezium's transforms and predicates, as Spark expressions."""
