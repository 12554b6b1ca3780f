"""Names as people see them: workers without their address, resources in their short form."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from .documents import Document, inner, text

NAMES_MAX: Final = 12
"""How many names stand in one line; -o json has them all."""


def worker_name(url: str) -> str:
    """Return the name at the end of a worker's URL: w1 of 127.0.0.1:8083/w1."""
    return url.rpartition("/")[2] or url


def short_form(resources: Iterable[Document]) -> str:
    """Return documents of resources as `flights flights-0..3`."""
    return named(
        (text(each, "connector"), task if isinstance(task := inner(each, "task"), int) else None)
        for each in resources
    )


def named(resources: Iterable[tuple[str, int | None]]) -> str:
    """Return connectors (task None) and tasks in the protocol's short form, runs drawn together."""
    names: list[str] = []
    ordered = sorted(resources, key=lambda each: (each[0], -1 if each[1] is None else each[1]))
    for connector, group in groupby(ordered, lambda each: each[0]):
        numbers = [number for _, number in group]
        if numbers[0] is None:
            names.append(connector)
        names += [f"{connector}-{run}" for run in _runs(n for n in numbers if n is not None)]
    if len(names) > NAMES_MAX:
        names[NAMES_MAX:] = [f"and {len(names) - NAMES_MAX} more"]
    return " ".join(names)


def _runs(numbers: Iterable[int]) -> Iterator[str]:
    """Yield `4` for a number alone and `0..3` for those in a row."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield str(found[0]) if len(found) == 1 else f"{found[0]}..{found[-1]}"
