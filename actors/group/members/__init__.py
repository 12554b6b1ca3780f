"""Seats: who may come in, what a heartbeat leads to, and how a member goes."""
