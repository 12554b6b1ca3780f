"""The worker's process: membership, follower and runner put together."""
