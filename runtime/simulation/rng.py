"""Where chance comes from: for each thing a stream of its own, out of the seed and its name.

So what happens to one worker does not shift what happens to another, in any process: a text
seeds `Random` by its SHA-512, not by its hash.
"""

from random import Random


def stream(*names: object) -> Random:
    """Return the stream of chance of these names; the same names, the same stream."""
    return Random("/".join(map(str, names)))  # noqa: S311  # nobody is to be kept from guessing
