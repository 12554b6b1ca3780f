"""Wraps libraries for the command line: options and arguments, and one HTTP connection."""
