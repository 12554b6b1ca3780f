"""Assignors at work: which there are, and the process of a node that runs them."""
