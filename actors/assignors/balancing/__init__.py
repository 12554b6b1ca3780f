"""How the balanced assignor levels work: by counting, by transfers, or by an exchange."""
