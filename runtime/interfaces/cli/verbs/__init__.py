"""The commands, a module for what is asked of one kind of thing."""
