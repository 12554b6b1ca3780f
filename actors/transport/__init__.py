"""The adapter to Thespian: actors, the actor system, its processes, and authenticated transport."""
