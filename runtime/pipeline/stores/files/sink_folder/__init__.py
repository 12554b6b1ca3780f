"""The folder of a sink: who owns it, what is staged in it, and how that is published."""
