"""The routes of the node and of this process: health, metrics, workers, log levels."""
