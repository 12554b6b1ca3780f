"""Folders of files as a sink: batches staged aside, then renamed into place."""
