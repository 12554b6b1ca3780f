"""Events as they happen: lines for a node's log, and how long things took."""
