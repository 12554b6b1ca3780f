"""Members: admission, heartbeats, reconciliation, static seats, and departures."""
