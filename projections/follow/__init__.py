"""Following a group's log: what was written since the last look, folded, read by key or counted."""
