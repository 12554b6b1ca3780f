"""A worker that could not read the configs that its assignment rests on.

It leaves the group, and what it ran goes on running for a while, a longer one after each
failure; after the last it gives up everything and counts anew. Workers of the eager protocol
have stopped everything before and only wait. See `DistributedHerder` of Connect.
"""

ATTEMPTS = 5
SHARE = 10
"""Into how many parts the longest delay is cut, of which the last pause is one."""


def is_behind(config_offset: int, read_offset: int) -> bool:
    """Tell whether a worker that has read so far has to read on before it starts anything."""
    return config_offset > read_offset


def pause_ms(max_delay_ms: int, failures: int) -> int | None:
    """Return how long work goes on after so many failures in a row, the first being 1.

    None if everything is to be given up.
    """
    left = ATTEMPTS - failures + 1
    return max_delay_ms // SHARE // left if left > 0 else None
