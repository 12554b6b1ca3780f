"""One order for each of several names."""

from collections.abc import Callable, Iterable

from ..command.client import Refused
from ..command.printing import Failed


def for_each(names: Iterable[str], order: Callable[[str], None]) -> None:
    """Send an order for each connector; one that is refused does not keep the others from it.

    Raises `Failed` at the end, with the names and messages of those that were refused.
    """
    refused: list[Refused] = []
    told: list[str] = []
    names = dict.fromkeys(names)
    for name in names:
        try:
            order(name)
        except Refused as error:
            refused.append(error)
            told.append(f"connector {name}: {error}")
    if len(names) == 1 and refused:
        raise refused[0]
    if told:
        raise Failed("\n".join(told))
