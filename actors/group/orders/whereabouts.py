"""Whom an operator means by a worker: found among the members, the lost, and the orders.

A worker is called by its member id, its instance id or its url; where no worker has such a
name, by its client id or the last part of its url, which several workers may have in common.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....events.group import Group, Member
from ....events.orders import Directory, Names, directory_of, last_part, names_of, workers_in
from ....events.placement import LONGEST_CALL
from ...messages.errors import listing


@dataclass(frozen=True, slots=True)
class WorkerMatch:
    """The one name that stands for what was asked for, or a message that says why none does."""

    name: str = ""
    message: str = ""


def find_worker(group: Group, called: str) -> WorkerMatch:
    """Return the name by which orders know the worker that is called so."""
    return next(find_workers(group, [called]))


def find_workers(group: Group, names: Iterable[str]) -> Iterator[WorkerMatch]:
    """Yield of each name by which other name orders know the worker that is called so."""
    directory = _directory(group)
    for called in names:
        yield _only(called, directory.find(called), directory.everybody)


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


def _directory(group: Group) -> Directory:
    """Return whom the group knows: its members, the lost, and those that orders name.

    Pins count as orders: a worker that was allowed to run something may be named again.
    """
    return directory_of((*workers_in(group), *_ordered(group)))


def _ordered(group: Group) -> Iterator[Names]:
    """Yield the workers that orders name, whether the group knows more of them or not."""
    pinned = {name for each in group.resource_orders.values() for name in each.pins}
    for name in pinned.union(group.worker_orders):
        yield Names(name, {name}, {last_part(name)} - {""})


def _only(called: str, found: set[str], everybody: set[str]) -> WorkerMatch:
    said = f"{called[:LONGEST_CALL]!a}"
    if len(found) == 1:
        return WorkerMatch(next(iter(found)))
    if found:
        return WorkerMatch(message=f"{said} could be any of {listing(found)}: name one of these")
    if not everybody:
        return WorkerMatch(message=f"there is no worker {said}: the group has none")
    return WorkerMatch(message=f"there is no worker {said}: there are {listing(everybody)}")
