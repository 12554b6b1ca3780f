"""Folders of files as sources and as sinks."""
