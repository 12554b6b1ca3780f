"""What is written down: the values, the records, how they change a group, and the log."""
