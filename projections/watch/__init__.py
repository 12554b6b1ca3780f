"""What is told of each thing as it happens: lines for a node's log, and how long things took."""
