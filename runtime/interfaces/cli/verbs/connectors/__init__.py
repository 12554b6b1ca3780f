"""The verbs that change connectors, their configs and their offsets."""
