"""Where work may run: what configs ask, what workers can take, what operators order.

*Configs* ask by keys that are the group's own. They never reach a plugin or a task, so that work
which stays where it is does not notice a change of them.

*Workers* say in their assignor metadata what they can take: a JSON object, such as
`{"capacity":2,"tags":["gpu"]}`. A worker joins before its engine is warm, with capacity 0, and
says its real capacity once a first job has run. One that does not know the classes of the node says
`"tagged_only":true`: it takes no work but such as demands tags that it has.

*Operators* name workers in orders and pins. A worker has names of its own: its member id, its
instance id, its url. If a name is none of these, it means the workers that have it as client id or
as the last part of their url, which may be several.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, cast

from .group import Group
from .model import ClientAssignor, Resource
from .records import Loss, MemberMetadata, Operator

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

_CLASS, _TASKS = "connector.class", "tasks.max"
_OF_MEMBERS = frozenset({"MemberConnector", "Member"})
"""The class whose work members run by themselves, as configs name it."""


def is_of_members(config: Mapping[str, str]) -> bool:
    """Return whether a connector is of the class whose work members over Kafka's wire run."""
    return last_part(config.get(_CLASS, "").replace(".", "/")) in _OF_MEMBERS


def most_tasks_in(config: Mapping[str, str]) -> int:
    """Return how many tasks a connector may have."""
    return _number(config.get(_TASKS, "")) or 1


@dataclass(frozen=True, slots=True)
class Placement:
    """A config's demands on placement: all of the tags, any of the zones, any of the workers.

    `weight` is that of the connector and of each task that has none of its own.
    """

    weight: int = 1
    task_weights: Mapping[int, int] = field(default_factory=dict[int, int])
    workers: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    zones: frozenset[str] = frozenset()

    def weight_of(self, resource: Resource) -> int:
        """Return the weight of the connector, or of one of its tasks."""
        return self.task_weights.get(resource.task, self.weight)


ANYWHERE = Placement()
"""What a config asks that says nothing of it."""


def placement_in(config: Mapping[str, str]) -> Placement:
    """Return the placement in a config; an invalid value counts as missing.

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
    """Return a config without its placement: the part that plugin and tasks get."""
    if KEYS.isdisjoint(config):
        return config
    return {key: value for key, value in config.items() if key not in KEYS}


def split_list(text: str) -> tuple[str, ...]:
    """Return the items of a list as configs spell it: with commas between them."""
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def weight_in(text: str) -> int | None:
    """Return the weight in a text; None if it is invalid."""
    number = _number(text)
    return number if number is not None and 1 <= number <= HEAVIEST else None


def task_weights_in(items: Sequence[str]) -> Mapping[int, int] | None:
    """Return the weights of tasks in items such as `3:20`; None if one is invalid."""
    weights: dict[int, int] = {}
    for item in items:
        number, _, said = item.partition(":")
        task, weight = _number(number), weight_in(said)
        if task is None or task > LARGEST_TASK or weight is None or task in weights:
            return None
        weights[task] = weight
    return weights


def flaw_in_labels(labels: Sequence[str]) -> str:
    """Return the flaw in a list of tags or zones; "" if there is none."""
    for label in labels:
        if label and not is_label(label):
            return (
                f"{label[:LONGEST_LABEL]!a} is no label: at most {LONGEST_LABEL} characters"
                " that can be printed, without commas"
            )
    return _flaw_in_list(labels)


def is_label(text: str) -> bool:
    """Return whether a text can be a tag or a zone; a lone surrogate cannot be printed."""
    return 0 < len(text) <= LONGEST_LABEL and text.isprintable() and "," not in text


def flaw_in_workers(names: Sequence[str]) -> str:
    """Return the flaw in a list of workers; "" if there is none."""
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
    """A worker's capacity relative to others, and its tags.

    Of two workers, one of capacity 2 is given twice as much as one of capacity 1.
    """

    capacity: int = 1
    tags: frozenset[str] = frozenset()
    tagged_only: bool = False
    """Whether it runs no work but such as demands tags: it does not know the node's classes."""


ORDINARY = Abilities()
"""What a worker can take that says nothing of it."""


def encode_abilities(abilities: Abilities) -> bytes:
    """Return abilities as assignor metadata."""
    document: dict[str, object] = {"capacity": abilities.capacity}
    if abilities.tags:
        document["tags"] = sorted(abilities.tags)
    if abilities.tagged_only:
        document["tagged_only"] = True
    return json.dumps(document, separators=(",", ":")).encode()


COLD = encode_abilities(Abilities(0))
"""The metadata of a worker that is not to be given work yet, or no longer."""

WARM = encode_abilities(ORDINARY)
"""The metadata of an ordinary worker that can run what it is given."""


@lru_cache(maxsize=256)  # a group of thousands says the same few things
def abilities(metadata: bytes) -> Abilities:
    """Return the abilities in metadata; missing or invalid ones have their defaults.

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
    tagged_only = said.get("tagged_only") is True
    return Abilities(_capacity(said.get("capacity", 1)), _tags(said.get("tags")), tagged_only)


def assignor_of(assignor: str, offers: Sequence[ClientAssignor]) -> ClientAssignor:
    """Return a member's offer of an assignor of that name.

    One that the coordinator runs is in nobody's list. It is shown what the member says for
    its own first choice, so that it knows a worker that is not warm yet.
    """
    first = offers[0] if offers else NO_ASSIGNOR
    return next((each for each in offers if each.name == assignor), first)


def is_warm(metadata: bytes) -> bool:
    """Return whether a member can take work: all can but those with capacity 0."""
    return abilities(metadata).capacity > 0


def takes_tagged_only(member: MemberMetadata) -> bool:
    """Return whether a member takes no work but such as demands tags."""
    return any(abilities(each.metadata).tagged_only for each in member.assignors)


def _capacity(said: object) -> int:
    # `false` and `0.0` equal 0 in Python, and are no capacity.
    return said if type(said) is int and 0 <= said <= LARGEST_CAPACITY else 1


def _tags(said: object) -> frozenset[str]:
    if not isinstance(said, list):
        return frozenset()
    tags = (each for each in cast("list[object]", said) if isinstance(each, str) and is_label(each))
    return frozenset(islice(tags, MOST_TAGS))


def worker_name(who: MemberMetadata | Loss) -> str:
    """Return the name by which orders and pins refer to a worker, present or lost."""
    return who.instance_id or who.url or who.member_id


def names_of(who: MemberMetadata | Loss) -> tuple[set[str], set[str]]:
    """Return the names that only this worker has, and those that it may share."""
    strong = {who.member_id, who.instance_id or "", who.url} - {""}
    client_id = who.client_id if isinstance(who, MemberMetadata) else ""
    return strong, {client_id, last_part(who.url)} - {""}


def last_part(url: str) -> str:
    """Return the name of a worker on its node, which its url ends with."""
    return url.rpartition("/")[2]


def is_drained(order: Operator | None, member_id: str) -> bool:
    """Return whether a member has to give up its work: it is drained, or being removed."""
    return order is not None and (order.draining or (order.gently and order.removing == member_id))


def placement_of(group: Group, resource: Resource) -> Operator | None:
    """Return the order for a resource that is in force, if there is one.

    A connector's order stands for its tasks that have none of their own.
    """
    orders = group.resource_orders
    return orders.get(resource) or orders.get(Resource(resource.connector))


class WorkerNames(NamedTuple):
    """A worker's name in orders and pins, and its other names."""

    name: str
    own: AbstractSet[str]
    """The names that only this worker has."""
    shared: AbstractSet[str]
    """The names that others may have as well."""


@dataclass(frozen=True, slots=True)
class Directory:
    """The workers by all of their names, and the name of each in orders."""

    exactly: Mapping[str, set[str]]
    """By a name of a worker's own: the workers that have it."""
    loosely: Mapping[str, set[str]]
    """By client id or last part of the url: the workers that it may mean."""
    everybody: set[str]

    def find(self, name: str) -> set[str]:
        """Return the workers with exactly this name, or else those that it may abbreviate."""
        return self.exactly.get(name) or self.loosely.get(name) or set()

    def resolve(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names in orders of all workers that these names match; unknown ones stay.

        A pin allows a set of workers: one name more in it never takes a worker out.
        """
        return tuple(sorted({each for name in names for each in self.find(name) or {name}}))


def directory_of(workers: Iterable[WorkerNames]) -> Directory:
    """Return a directory of these workers."""
    exactly: dict[str, set[str]] = {}
    loosely: dict[str, set[str]] = {}
    everybody: set[str] = set()
    for name, own, shared in workers:
        everybody.add(name)
        for called in own:
            exactly.setdefault(called, set()).add(name)
        for called in shared:
            loosely.setdefault(called, set()).add(name)
    return Directory(exactly, loosely, everybody)


def workers_in(group: Group) -> Iterator[WorkerNames]:
    """Yield the workers of the group, present and lost ones."""
    for member in group.members.values():
        yield _names_of_worker(member.metadata)
    for loss in group.losses.values():
        yield _names_of_worker(loss)


def _names_of_worker(who: MemberMetadata | Loss) -> WorkerNames:
    own, shared = names_of(who)
    return WorkerNames(worker_name(who), own, shared)
