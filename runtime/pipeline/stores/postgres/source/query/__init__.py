"""The source of a query: bulk, or incremental by growing columns."""
