"""Checks of what users give: configs, their secrets, offsets, and what they lead to."""
