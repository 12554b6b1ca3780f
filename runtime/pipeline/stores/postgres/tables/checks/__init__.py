"""Checks of a source of tables: tables and rows that are not read, and offsets that users set."""
