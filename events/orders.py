"""Operators' orders for workers and resources, and which workers a name means.

A worker has names of its own: its member id, its instance id, its url. If a name is none of these,
it means the workers that have it as client id or as the last part of their url, which may be
several.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from .group import Group
from .model import Resource
from .records import Loss, MemberMetadata, Operator


def worker_name(who: MemberMetadata | Loss) -> str:
    """Return the name by which orders and pins know a worker, present or lost."""
    return who.instance_id or who.url or who.member_id


def names_of(who: MemberMetadata | Loss) -> tuple[set[str], set[str]]:
    """Return the names that only this worker has, and those that others may have as well."""
    strong = {who.member_id, who.instance_id or "", who.url} - {""}
    client_id = who.client_id if isinstance(who, MemberMetadata) else ""
    return strong, {client_id, last_part(who.url)} - {""}


def last_part(url: str) -> str:
    """Return the name of a worker on its node, which its url ends with."""
    return url.rpartition("/")[2]


def is_drained(order: Operator | None, member_id: str) -> bool:
    """Tell whether a member is to give up what it has: its worker is drained, or it is removed."""
    return order is not None and (order.draining or (order.gently and order.removing == member_id))


def placement_of(group: Group, resource: Resource) -> Operator | None:
    """Return the order that holds for a resource, if there is one.

    A connector's order stands for its tasks that have none of their own.
    """
    orders = group.resource_orders
    return orders.get(resource) or orders.get(Resource(resource.connector))


class Names(NamedTuple):
    """By which name orders and pins know a worker, and what else it is called."""

    name: str
    own: AbstractSet[str]
    """The names that only this worker has."""
    shared: AbstractSet[str]
    """The names that others may have as well."""


@dataclass(frozen=True, slots=True)
class Directory:
    """The workers by what they are called, as the names by which orders know them."""

    exactly: Mapping[str, set[str]]
    """By a name of a worker's own: the workers that have it."""
    loosely: Mapping[str, set[str]]
    """By client id or last part of the url: the workers that it may mean."""
    everybody: set[str]

    def find(self, name: str) -> set[str]:
        """Return the workers with exactly this name, or else those that it may mean."""
        return self.exactly.get(name) or self.loosely.get(name) or set()

    def resolve(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return by which names orders know all that these may mean; an unknown name stays.

        A pin allows a set of workers: one name more in it never takes a worker out.
        """
        return tuple(sorted({each for name in names for each in self.find(name) or {name}}))


def directory_of(workers: Iterable[Names]) -> Directory:
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


def workers_in(group: Group) -> Iterator[Names]:
    """Yield the workers of the group: those that are there, and the lost."""
    for member in group.members.values():
        yield _names_of_worker(member.metadata)
    for loss in group.losses.values():
        yield _names_of_worker(loss)


def _names_of_worker(who: MemberMetadata | Loss) -> Names:
    own, shared = names_of(who)
    return Names(worker_name(who), own, shared)
