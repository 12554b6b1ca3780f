"""Finds assignors by name: built-in ones, and entry points of installed distributions.

A third-party assignor is an entry point in the group `fairlead.assignors`. Its code is imported
only in the assignor process, and only if the configuration names it. One that groups run by
themselves is an entry point in `fairlead.server_assignors`; its code is imported only in a sandbox
of the process that has groups, once a member has named it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import cast

from ....actors.assignors.built_in.catalogue import BUILT_IN, SERVER_ASSIGNORS
from ....actors.assignors.sdk import AssignorFactory, ConnectAssignor
from ....actors.group.state.validate import flaw_in_assignor
from ....events.model import ClientAssignor
from .user_code import USERS_ERRORS, describe, one_line

LOGGER = logging.getLogger(__name__)

GROUP = "fairlead.assignors"
SERVER_GROUP = "fairlead.server_assignors"
METHODS = ("metadata", "assign", "on_assignment")
SERVER_METHODS = ("assign",)
VERSIONS = ("minimum_version", "maximum_version")


class AssignorRefusedError(Exception):
    """A configured assignor cannot be used; the message has its origin, why, and what to do."""


@dataclass(frozen=True, slots=True)
class KnownAssignor:
    """An assignor that the configuration can name; loading it may still fail."""

    name: str
    origin: str = "built in"


def known_assignors() -> Sequence[KnownAssignor]:
    """Return all assignors that the configuration can name, without importing any."""
    points = sorted(_entry_points(), key=lambda each: each.name)
    return [
        *map(KnownAssignor, BUILT_IN),
        *(KnownAssignor(each.name, origin_of(each)) for each in points),
    ]


def find_assignor(name: str) -> AssignorFactory:
    """Return the factory of the assignor with this name; raises `AssignorRefusedError`."""
    points = [each for each in _entry_points() if each.name == name]
    if name in BUILT_IN:
        if points:
            raise AssignorRefusedError(
                f"assignor {name!r} is built in, and {origin_of(points[0])} has the same name:"
                " rename that entry point, or uninstall it"
            )
        return BUILT_IN[name]
    if not points:
        names = ", ".join(dict.fromkeys(each.name for each in known_assignors()))
        raise AssignorRefusedError(
            f"there is no assignor {name!r}: name one of {names} in group.local.assignors, or"
            f" install a distribution with an entry point {name} in the group {GROUP}"
        )
    if len(points) > 1:
        both = " and ".join(map(origin_of, points))
        raise AssignorRefusedError(f"{both} have the same name: uninstall all but one of them")
    return _load(points[0])


def known_server_assignors() -> Sequence[str]:
    """Return the names of users' server assignors, without importing any; built-in ones stand."""
    names: list[str] = []
    for point in sorted(_entry_points(SERVER_GROUP), key=lambda each: each.name):
        flaw = flaw_in_assignor(ClientAssignor(point.name))
        if point.name in SERVER_ASSIGNORS:
            flaw = "a server assignor of that name is built in"
        if point.name in names:
            flaw = "another distribution has one of that name"
        if flaw:
            LOGGER.warning("%s is left out: %s", origin_of(point), flaw)
        else:
            names.append(point.name)
    return names


def find_server_assignor(name: str) -> AssignorFactory:
    """Return the factory of a server assignor of users'; raises `AssignorRefusedError`."""
    found = next((each for each in _entry_points(SERVER_GROUP) if each.name == name), None)
    if found is None:
        raise AssignorRefusedError(f"there is no entry point {name!r} in the group {SERVER_GROUP}")
    return _load(found)


def _entry_points(group: str = GROUP) -> Sequence[EntryPoint]:
    """Return the entry points of all distributions whose metadata can be read."""
    try:
        return tuple(entry_points(group=group))
    except USERS_ERRORS:
        return tuple(_readable_entry_points(group))


def _readable_entry_points(group: str) -> Iterator[EntryPoint]:
    """Yield entry points, skipping broken distributions; of two with one name the first counts."""
    names: set[str] = set()
    for dist in distributions():
        name = "a distribution without a name"
        try:
            name = dist.name
            entry_points = dist.entry_points.select(group=group)
        except USERS_ERRORS as error:
            LOGGER.warning("%s is broken, no assignor is taken from it: %s", name, describe(error))
            continue
        if name not in names:
            names.add(name)
            yield from entry_points


def make_assignor(
    name: str, make: AssignorFactory, conf: Mapping[str, str], *, serves: bool = False
) -> ConnectAssignor:
    """Create an assignor and check its interface; raises `AssignorRefusedError`.

    One that `serves` is run by groups, and needs nothing but `assign`.
    """
    try:
        assignor = make(conf)
        flaw = _flaw_in_methods(assignor, SERVER_METHODS) if serves else _flaw_in(assignor, name)
    except USERS_ERRORS as error:
        raise AssignorRefusedError(
            f"assignor {name!r} cannot be created: {describe(error)}"
        ) from error
    if flaw:
        raise AssignorRefusedError(
            f"assignor {name!r} is not an assignor: {flaw}; see ConnectAssignor"
        )
    return assignor


def origin_of(point: EntryPoint) -> str:
    """Describe an entry point: `entry point x = shop.rules:Nearest of shop 1.2`."""
    dist = point.dist
    whose = f"{dist.name} {dist.version}" if dist is not None else "an unknown distribution"
    return f"entry point {point.name} = {point.value} of {whose}"


def _load(point: EntryPoint) -> AssignorFactory:
    try:
        loaded: object = point.load()
    except USERS_ERRORS as error:
        raise AssignorRefusedError(
            f"assignor {point.name!r} cannot be imported: {describe(error)} ({origin_of(point)}):"
            " fix or reinstall it, or remove it from group.local.assignors"
        ) from error
    if not callable(loaded):
        raise AssignorRefusedError(
            f"assignor {point.name!r} is a {type(loaded).__name__} ({origin_of(point)}): the entry"
            " point must name a class or function that creates an assignor from its configuration"
        )
    return cast("AssignorFactory", loaded)


def _flaw_in_methods(assignor: object, methods: Sequence[str]) -> str:
    missing = [each for each in methods if not callable(getattr(assignor, each, None))]
    return f"{type(assignor).__name__} has no method {', '.join(missing)}" if missing else ""


def _flaw_in(assignor: object, name: str) -> str:
    """Return why an object is not a valid assignor with this name; "" if it is."""
    kind = type(assignor).__name__
    if flaw := _flaw_in_methods(assignor, METHODS):
        return flaw
    for each in VERSIONS:
        if type(getattr(assignor, each, None)) is not int:
            return f"{kind}.{each} is not a whole number"
    own_name = getattr(assignor, "name", None)
    if own_name != name:
        return one_line(f"{kind}.name is {own_name!r}, and its entry point is called {name!r}")
    lowest, highest = (getattr(assignor, each, 0) for each in VERSIONS)
    return flaw_in_assignor(ClientAssignor(name, lowest, highest, highest))
