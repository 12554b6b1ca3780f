"""The first process of a node, and its handles of the processes beside the actor system."""
