"""Traces: the epochs of a group and the batches of its tasks as spans, made of the logs alone."""
