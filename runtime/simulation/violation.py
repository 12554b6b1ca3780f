"""What a simulation is there to find."""


class Violation(Exception):  # noqa: N818  # what was violated is the news, not that it is an error
    """Something happened that must never happen; the number is that of PROTOCOL §11."""
