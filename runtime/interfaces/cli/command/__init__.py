"""What the verbs work with: options, the cluster's client, logs on disk, tables, exit codes."""
