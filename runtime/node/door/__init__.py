"""The rules of a node whose group may be owned by another one: when it claims, what it delivers."""
