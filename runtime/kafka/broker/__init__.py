"""The brokers behind the listener: connections to them, and their responses for clients."""
