"""Names in a sentence: never more of them than somebody reads."""

from collections.abc import Collection

LONGEST_LIST = 20
"""How many names a sentence lists at most."""


def listing(names: Collection[str], between: str = ", ", last: str = " and ") -> str:
    """Return names in order, joined by words: the first few, and how many more there are."""
    shown = sorted(names)[:LONGEST_LIST]
    more = len(names) - len(shown)
    return between.join(shown) + (f"{last}{more} more" if more else "")
