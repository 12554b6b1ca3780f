"""The tasks and connectors of a worker, each on a thread of its own, and their reports."""
