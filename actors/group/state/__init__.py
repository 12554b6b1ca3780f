"""The ground of all rules of a group: its settings, its soft state, checks, orders in force."""
