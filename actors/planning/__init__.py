"""What would come of changes to a group: the real rules, on a copy that nobody runs."""
