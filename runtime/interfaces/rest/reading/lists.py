"""The encoded lists of a group's connectors, which many ask for again and again.

Encoding the connectors takes longest, then joining them, then compressing the list. So each
connector is encoded once until a record may have changed it, and the last lists are kept whole.
"""

from collections.abc import Callable, Hashable, Iterable, Set
from typing import Final

from msgspec import Raw
from msgspec.json import encode

from .encoded import EncodedBody

MOST_LISTS: Final = 8
"""How many lists are kept: whole ones, pages of them, and those of callers who see a part."""


class EncodedLists:
    """The lists of one group, for one thread at a time."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, dict[str, Raw]] = {}
        """What `join` has encoded, by connector."""
        self._bodies: dict[Hashable, EncodedBody] = {}
        """The last lists, as long as no connector has changed; the oldest first."""

    def forget(self, changed: Set[str] | None) -> None:
        """Drop what is about connectors that have changed; None: any of them."""
        if changed is None:
            self._parts.clear()
        if changed is None or changed:
            self._bodies.clear()
        for parts in self._parts.values() if changed else ():
            for name in changed or ():
                parts.pop(name, None)

    def find(self, key: Hashable) -> EncodedBody | None:
        """Return the list that is kept under a key; None: it has to be built."""
        return self._bodies.get(key)

    def keep(self, key: Hashable, plain: bytes) -> EncodedBody:
        """Keep a list that depends on its key and on the group's records alone; return it."""
        if len(self._bodies) >= MOST_LISTS:
            del self._bodies[next(iter(self._bodies))]
        body = self._bodies[key] = EncodedBody(plain)
        return body

    def join(
        self, what: Hashable, names: Iterable[str], build: Callable[[str], object]
    ) -> dict[str, Raw]:
        """Return a value of each connector, encoded; it depends on the group's records alone."""
        parts = self._parts.setdefault(what, {})
        parts |= {name: Raw(encode(build(name))) for name in names if name not in parts}
        return {name: parts[name] for name in names}
