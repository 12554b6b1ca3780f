"""Shared by the commands: options, the REST client, logs on disk, tables, exit codes."""
