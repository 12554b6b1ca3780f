"""What every command works with: options, the cluster's client, output and exit codes."""
