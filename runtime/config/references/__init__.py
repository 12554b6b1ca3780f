"""References in configs to what is not written in them, and secrets in texts."""
