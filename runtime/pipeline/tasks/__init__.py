"""What a worker runs: tasks and connectors, a thread each, and what they report."""
