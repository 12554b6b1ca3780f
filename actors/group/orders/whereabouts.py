"""Whom an operator means by a worker: found among the members, the lost, and the orders.

A worker is called by its member id, its instance id or its url; where no worker has such a
name, by its client id or the last part of its url, which several workers may have in common.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ....events.group import Group, Member
from ....events.orders import worker_name
from ....events.records import Loss, MemberMetadata

LONGEST_LIST = 20
"""How many workers a message lists at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """The one name that stands for what was asked for, or a message that says why none does."""

    name: str = ""
    message: str = ""


def find_worker(group: Group, called: str) -> Found:
    """Return the name by which orders know the worker that is called so.

    Pins count as orders: who was allowed to run something may be named again.
    """
    known = [(*_names(each), worker_name(each)) for each in _known(group)]
    ordered = {name: name for name in group.worker_orders}
    ordered |= {name: name for each in group.resource_orders.values() for name in each.pins}
    exactly = {name for strong, _, name in known if called in strong}
    exactly |= {name for name in ordered if name == called}
    loosely = {name for _, weak, name in known if called in weak}
    loosely |= {name for name in ordered if _last_part(name) == called}
    everybody = {name for _, _, name in known} | ordered.keys()
    return _only(called, exactly or loosely, everybody)


def find_member(group: Group, called: str) -> Member | str:
    """Return the one member that is called so, or a message that says why there is none."""
    members = group.members
    if called in members:
        return members[called]
    names = {member_id: _names(member.metadata) for member_id, member in members.items()}
    exactly = {member_id for member_id, (strong, _) in names.items() if called in strong}
    loosely = {member_id for member_id, (_, weak) in names.items() if called in weak}
    found = _only(called, exactly or loosely, set(members))
    return members[found.name] if found.name else found.message


def _known(group: Group) -> Iterator[MemberMetadata | Loss]:
    for member in group.members.values():
        yield member.metadata
    yield from group.losses.values()


def _names(who: MemberMetadata | Loss) -> tuple[set[str], set[str]]:
    """Return the names that only this worker has, and those that others may have as well."""
    strong = {who.member_id, who.instance_id or "", who.url} - {""}
    client_id = who.client_id if isinstance(who, MemberMetadata) else ""
    return strong, {client_id, _last_part(who.url)} - {""}


def _last_part(url: str) -> str:
    return url.rpartition("/")[2]


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
