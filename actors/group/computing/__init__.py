"""Computing the target: who computes it, from which snapshot, and what is accepted."""
