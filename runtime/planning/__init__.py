"""Plans: what would come of changes to a group, held against how it is now."""
