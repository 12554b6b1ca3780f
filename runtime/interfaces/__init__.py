"""The interfaces: what people and programs use a node by."""
