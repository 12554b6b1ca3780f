"""Where work may run, and how much of a worker it takes: what configs ask, what workers can take.

The keys of configs that say so are the group's own. They never reach a plugin or a task, so that
work which stays where it is does not notice a change of them.

What a worker can take stands in its assignor metadata: a JSON object, such as
`{"capacity":2,"tags":["gpu"]}`. A worker joins before its engine is warm, with capacity 0, and
says its real capacity once a first job has run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import cast

from .model import ClientAssignor, Resource

PREFIX = "placement."
WEIGHT = "placement.weight"
TASK_WEIGHTS = "placement.task.weights"
WORKERS = "placement.workers"
TAGS = "placement.tags"
ZONES = "placement.zones"
KEYS = frozenset({WEIGHT, TASK_WEIGHTS, WORKERS, TAGS, ZONES})

HEAVIEST = 1_000
"""The largest weight; the lightest is 1."""

LONGEST_LABEL = 64
"""How many characters a tag or the name of a zone has at most."""

MOST_ITEMS = 100
"""How many workers, tags or zones a list has at most."""

LONGEST_CALL = 200
"""How many characters the name of a worker has at most."""

LARGEST_TASK = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Placement:
    """What a config asks: of a worker all of the tags, any of the zones, any of the names.

    `weight` is that of the connector and of each task that has none of its own.
    """

    weight: int = 1
    task_weights: Mapping[int, int] = field(default_factory=dict[int, int])
    workers: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def weight_of(self, resource: Resource) -> int:
        """Return what the connector, or one of its tasks, weighs."""
        return self.task_weights.get(resource.task, self.weight)


ANYWHERE = Placement()
"""What a config asks that says nothing of it."""


def placement_in(config: Mapping[str, str]) -> Placement:
    """Return what a config asks; a value that is no good counts as not given.

    Configs are refused on their way in if one is, but a log may be of another version.
    """
    if KEYS.isdisjoint(config):
        return ANYWHERE
    workers, tags, zones = (split_list(config.get(key, "")) for key in (WORKERS, TAGS, ZONES))
    return Placement(
        weight_in(config.get(WEIGHT, "")) or 1,
        task_weights_in(split_list(config.get(TASK_WEIGHTS, ""))) or {},
        () if flaw_in_workers(workers) else tuple(sorted(set(workers))),
        frozenset() if flaw_in_labels(tags) else frozenset(tags),
        frozenset() if flaw_in_labels(zones) else frozenset(zones),
    )


def work_in(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return a config without what it says of placement: what plugin and tasks are to see."""
    if KEYS.isdisjoint(config):
        return config
    return {key: value for key, value in config.items() if key not in KEYS}


def split_list(text: str) -> tuple[str, ...]:
    """Return the items of a list as configs spell it: with commas between them."""
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def weight_in(text: str) -> int | None:
    """Return the weight that a text spells, None if it is none."""
    number = _number(text)
    return number if number is not None and 1 <= number <= HEAVIEST else None


def task_weights_in(items: Sequence[str]) -> Mapping[int, int] | None:
    """Return the weights that items such as `3:20` give to tasks, None if one is no good."""
    found: dict[int, int] = {}
    for item in items:
        number, _, said = item.partition(":")
        task, weight = _number(number), weight_in(said)
        if task is None or task > LARGEST_TASK or weight is None or task in found:
            return None
        found[task] = weight
    return found


def flaw_in_labels(labels: Sequence[str]) -> str:
    """Return what is wrong with the tags, or the zones, of a list, or nothing."""
    for label in labels:
        if label and not is_label(label):
            return (
                f"{label[:LONGEST_LABEL]!a} is no label: at most {LONGEST_LABEL} characters"
                " that can be printed, without commas"
            )
    return _flaw_in_list(labels)


def is_label(text: str) -> bool:
    """Tell whether a text can be a tag or a zone; a lone surrogate cannot be printed."""
    return 0 < len(text) <= LONGEST_LABEL and text.isprintable() and "," not in text


def flaw_in_workers(names: Sequence[str]) -> str:
    """Return what is wrong with the workers of a list, or nothing."""
    for name in names:
        if len(name) > LONGEST_CALL or not name.isprintable():
            return (
                f"{name[:LONGEST_LABEL]!a} is no worker's name: at most {LONGEST_CALL} characters"
                " that can be printed"
            )
    return _flaw_in_list(names)


def _flaw_in_list(items: Sequence[str]) -> str:
    if not all(items):
        return "an item is blank: there is a comma too many" if len(items) > 1 else "it is blank"
    if len(items) > MOST_ITEMS:
        return f"there are {len(items)} items: at most {MOST_ITEMS} are allowed"
    return ""


def _number(text: str) -> int | None:
    text = text.strip()
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_TASK))
    return int(text) if is_number else None


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
