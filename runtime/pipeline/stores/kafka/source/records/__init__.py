"""What is looked at in each record before its columns are made, and what becomes of bad ones."""
