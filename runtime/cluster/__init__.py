"""What all processes of a node know: its spec, run folder and identity, and their messages."""
