"""Types of the answers of REST, which the command line reads; JSON has their members."""
