"""The routes of the page: its data at first, each change of it, and its files."""
