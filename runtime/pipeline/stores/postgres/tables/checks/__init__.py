"""What keeps tables, or rows of them, from being read: told, or refused."""
