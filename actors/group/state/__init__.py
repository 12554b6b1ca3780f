"""What every rule of a group leans on: its settings, its soft state, checks, orders in force."""
