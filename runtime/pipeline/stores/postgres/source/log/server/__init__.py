"""The server's side of the log: the session, the slot, the publication, and its tables."""
