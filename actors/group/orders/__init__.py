"""What operators want: of workers, of work, and of the group itself."""
