"""How the balanced assignor levels work: by counting, or by an exchange."""
