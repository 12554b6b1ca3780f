"""The PostgreSQL sink: batches are staged in tables, and published in one transaction each."""
