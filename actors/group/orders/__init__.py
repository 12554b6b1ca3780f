"""Commands of people: for connectors, workers, placement, and the group itself."""
