"""The configuration: settings, where they come from, and secrets in them."""
