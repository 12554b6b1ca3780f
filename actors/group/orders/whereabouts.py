"""Whom an operator means by a worker: found among the members, the lost, and the orders.

A worker is called by its member id, its instance id or its url; where no worker has such a
name, by its client id or the last part of its url, which several workers may have in common.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....events.group import Group, Member
from ....events.orders import last_part, names_of, worker_name
from ....events.records import Loss, MemberMetadata

LONGEST_LIST = 20
"""How many workers a message lists at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """The one name that stands for what was asked for, or a message that says why none does."""

    name: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Directory:
    """The workers by what they are called, as the names by which orders know them."""

    exactly: Mapping[str, set[str]]
    loosely: Mapping[str, set[str]]
    everybody: set[str]

    def called(self, name: str) -> set[str]:
        """Return who is called so: whom it names exactly, else whom it may mean."""
        return self.exactly.get(name) or self.loosely.get(name) or set()

    def resolved(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return by which names orders know these; who is not known, or not for sure, stays."""
        found = ((name, self.called(name)) for name in names)
        return tuple(sorted({min(who) if len(who) == 1 else name for name, who in found}))


def directory_of(group: Group) -> Directory:
    """Return whom the group knows: its members, the lost, and those that orders name."""
    exactly: dict[str, set[str]] = {}
    loosely: dict[str, set[str]] = {}
    everybody = {name for each in group.resource_orders.values() for name in each.pins}
    everybody.update(group.worker_orders)
    for name in everybody:
        exactly.setdefault(name, set()).add(name)
        loosely.setdefault(last_part(name), set()).add(name)
    for who in _known(group):
        strong, weak = names_of(who)
        name = worker_name(who)
        everybody.add(name)
        for called in strong:
            exactly.setdefault(called, set()).add(name)
        for called in weak:
            loosely.setdefault(called, set()).add(name)
    return Directory(exactly, loosely, everybody)


def find_worker(group: Group, called: str) -> Found:
    """Return the name by which orders know the worker that is called so.

    Pins count as orders: who was allowed to run something may be named again.
    """
    directory = directory_of(group)
    return _only(called, directory.called(called), directory.everybody)


def find_member(group: Group, called: str) -> Member | str:
    """Return the one member that is called so, or a message that says why there is none."""
    members = group.members
    if called in members:
        return members[called]
    names = {member_id: names_of(member.metadata) for member_id, member in members.items()}
    exactly = {member_id for member_id, (strong, _) in names.items() if called in strong}
    loosely = {member_id for member_id, (_, weak) in names.items() if called in weak}
    found = _only(called, exactly or loosely, set(members))
    return members[found.name] if found.name else found.message


def _known(group: Group) -> Iterator[MemberMetadata | Loss]:
    for member in group.members.values():
        yield member.metadata
    yield from group.losses.values()


def _only(called: str, found: set[str], everybody: set[str]) -> Found:
    if len(found) == 1:
        return Found(found.pop())
    if found:
        return Found(message=f"{called!a} could be any of {_listed(found)}: name one of these")
    if not everybody:
        return Found(message=f"there is no worker {called!a}: the group has none")
    return Found(message=f"there is no worker {called!a}: there are {_listed(everybody)}")


def _listed(names: set[str]) -> str:
    listed = sorted(names)
    more = len(listed) - LONGEST_LIST
    return ", ".join(listed[:LONGEST_LIST]) + (f" and {more} more" if more > 0 else "")
