"""The door to Thespian: actors, their transport and channel, and what a host tells them."""
