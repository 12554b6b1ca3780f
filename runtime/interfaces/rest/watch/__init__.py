"""What the REST process does beside its requests: it tells what happens, and looks for input."""
