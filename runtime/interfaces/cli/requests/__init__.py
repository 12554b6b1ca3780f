"""What commands ask of a cluster: configs from files, several names, waits, completions."""
