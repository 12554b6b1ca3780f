"""The simulated process of a group, and what is durable of it."""
