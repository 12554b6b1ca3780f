"""The member's side of the protocol, pure: what an answer leads to."""
