"""The routes of groups: their state and history, plans, orders for their workers."""
