"""`source.type=postgres`: the sources of tables, of the server's WAL, and of queries."""
