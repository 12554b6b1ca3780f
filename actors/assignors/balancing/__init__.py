"""How the balanced assignor levels work: what it counts and deals with, and the exchange."""
