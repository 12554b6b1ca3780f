"""A member's side of the protocol, without input or output: what each answer leads to."""
