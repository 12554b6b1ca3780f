"""Folders of files as a source: what lies there, what it holds, and what was read."""
