"""The routes of connectors: state, configs, life, offsets, plugins."""
