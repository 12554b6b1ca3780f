"""Where rows come from and go to: files, Kafka, PostgreSQL, databases with JDBC."""
