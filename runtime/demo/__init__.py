"""The demos: a pipeline under a join and a kill of workers, and a check of its output."""
