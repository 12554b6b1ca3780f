"""What the server has for the log: the session, the slot, the publication, and its tables."""
