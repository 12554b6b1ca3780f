"""What a worker can take, as its assignor metadata says it: how much, and of which kind.

The metadata is a JSON object, such as `{"capacity":2,"tags":["gpu"]}`. A worker joins before
its engine is warm, with capacity 0, and says its real capacity once a first job has run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import cast

from ..model import ClientAssignor
from .config import is_label

LARGEST_CAPACITY = 1_000

MOST_TAGS = 32
"""How many tags a worker has at most."""

NO_ASSIGNOR = ClientAssignor("")
"""What is shown of a member that lists no assignor: it leaves the computing to the group."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """How much of the work a worker takes next to others, and what its tags are.

    Of two workers, one of capacity 2 is given twice as much as one of capacity 1.
    """

    capacity: int = 1
    tags: frozenset[str] = frozenset()


ORDINARY = Abilities()
"""What a worker can take that says nothing of it."""


def encode_abilities(abilities: Abilities) -> bytes:
    """Return the metadata that says so."""
    document: dict[str, object] = {"capacity": abilities.capacity}
    if abilities.tags:
        document["tags"] = sorted(abilities.tags)
    return json.dumps(document, separators=(",", ":")).encode()


COLD = encode_abilities(Abilities(0))
"""The metadata of a worker that is not to be given work yet, or no longer."""

WARM = encode_abilities(ORDINARY)
"""The metadata of an ordinary worker that can run what it is given."""


@lru_cache(maxsize=256)  # a group of thousands says the same few things
def abilities(metadata: bytes) -> Abilities:
    """Return what metadata says; what is missing, unreadable or out of range is ordinary.

    It may come from a worker of another make, and a worker without work helps nobody. A tag
    that no config could ask for is none, and so is what comes after the first 32 of them.
    """
    if not metadata:
        return ORDINARY
    try:
        document: object = json.loads(metadata)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested beyond reason
        return ORDINARY
    if not isinstance(document, dict):
        return ORDINARY
    said = cast("Mapping[str, object]", document)
    return Abilities(_capacity(said.get("capacity", 1)), _tags(said.get("tags")))


def assignor_of(assignor: str, said: Sequence[ClientAssignor]) -> ClientAssignor:
    """Return what a member says for an assignor of that name.

    One that the coordinator runs is in nobody's list. It is shown what the member says for
    its own first choice, so that it knows a worker that is not warm yet.
    """
    first = said[0] if said else NO_ASSIGNOR
    return next((each for each in said if each.name == assignor), first)


def is_warm(metadata: bytes) -> bool:
    """Tell whether a member can take work: all do but those that plainly say capacity 0."""
    return abilities(metadata).capacity > 0


def _capacity(said: object) -> int:
    # `false` and `0.0` equal 0 in Python, and are no capacity.
    return said if type(said) is int and 0 <= said <= LARGEST_CAPACITY else 1


def _tags(said: object) -> frozenset[str]:
    if not isinstance(said, list):
        return frozenset()
    tags = (each for each in cast("list[object]", said) if isinstance(each, str) and is_label(each))
    return frozenset(islice(tags, MOST_TAGS))
