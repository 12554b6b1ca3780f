"""References in configs to what is not written in them."""
