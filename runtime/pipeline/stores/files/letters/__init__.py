"""`source.type=dead-letters`: the dead letters in a folder, as the rows that they once were."""
