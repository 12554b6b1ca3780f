"""The event log of a group: values, records, their fold, and the log on disk."""
