"""Several simulated hosts with one store, one of which owns the group at a time."""
