"""How messages of which many thousands a second cross process borders are pickled.

Pickle asks a frozen dataclass with slots for the list of its fields each time, and sets them one by
one. Handing its values to the class is several times as fast, and means the same.
"""

from dataclasses import fields
from operator import attrgetter
from typing import TypeVar

T = TypeVar("T")


def pickled_by_values(kind: type[T]) -> type[T]:
    """Pickle a dataclass as a call with the values of all its fields, in their order."""
    values = attrgetter(*(each.name for each in fields(kind)))  # type: ignore[arg-type]
    kind.__reduce__ = lambda self: (kind, values(self))  # type: ignore[method-assign]
    return kind
