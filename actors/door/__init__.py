"""The door to Thespian: actors, their transport and its channel."""
