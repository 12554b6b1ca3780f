"""The checks of a simulation: the invariants of PROTOCOL §11."""
