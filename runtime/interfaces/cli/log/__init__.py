"""A group's log on disk, record by record and epoch by epoch."""
