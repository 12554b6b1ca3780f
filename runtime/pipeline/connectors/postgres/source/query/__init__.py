"""The rows of a query as a source: whole, or read on by columns that grow."""
