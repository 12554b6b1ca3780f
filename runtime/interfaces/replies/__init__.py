"""What the REST interface answers and the command line reads, as types; JSON has their members."""
