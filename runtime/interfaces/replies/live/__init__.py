"""Replies about what is and what happens now: events of a group, and its page."""
