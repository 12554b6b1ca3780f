"""What the command line takes from libraries: options and arguments, and one HTTP connection."""
