"""The target: who computes it, from what, and what is accepted."""
