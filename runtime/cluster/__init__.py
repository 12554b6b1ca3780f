"""A node as all of its processes know it: spec, run folder, identity, and control messages."""
