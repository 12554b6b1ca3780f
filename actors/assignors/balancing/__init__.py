"""What the balanced assignor is made of."""
