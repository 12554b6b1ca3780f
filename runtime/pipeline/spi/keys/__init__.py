"""The config keys of all connectors, and how keys are made."""
