"""Plans: a dry run of changes to a group, compared with its current state."""
