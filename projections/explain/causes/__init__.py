"""The cause of an epoch: when it came about, what had changed, and who did it."""
