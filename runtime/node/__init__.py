"""The node: its first process, its supervisor, and what they tell one another."""
