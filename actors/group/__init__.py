"""The group coordinator's rules, pure: what a command leads to."""
