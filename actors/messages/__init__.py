"""The messages between actors.

Messages cross process borders, so they are frozen, hold only values of `events.model`, and are
found by name on the other side. Commands change a group, if anything does. None of them carries
the time: the coordinator's own clock is handed to the rules with each.
"""
