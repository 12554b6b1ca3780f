"""What commits, out of the server's log: a slot is peeked at, and advanced once a batch counts."""
