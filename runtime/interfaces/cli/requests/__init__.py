"""Finds a cluster and asks it: options, configs from files, several names, waits, completions."""
