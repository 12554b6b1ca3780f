"""Connect's plugins in tests: what they run on, and folders that have them."""
