"""What is on the wire: frames, which calls are served, and those of groups as messages of ours."""
