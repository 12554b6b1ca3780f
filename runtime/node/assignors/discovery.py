"""Which assignors there are: built-in ones, and those of entry points of installed distributions.

An assignor of one's own is an entry point of the group `fairlead.assignors`. Its code is
imported where it is to run, in the assignor process, and only if a setting asks for it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import cast

from ....actors.assignors.built_in.catalogue import BUILT_IN
from ....actors.assignors.sdk import AssignorFactory, ConnectAssignor
from ....actors.group.state.validate import flaw_in_assignor
from ....events.model import ClientAssignor
from .user_code import USERS_ERRORS, describe, one_line

LOGGER = logging.getLogger(__name__)

GROUP = "fairlead.assignors"
METHODS = ("metadata", "assign", "on_assignment")
VERSIONS = ("minimum_version", "maximum_version")


class AssignorRefusedError(Exception):
    """An assignor that a setting names cannot be used: which, from where, why, and what to do."""


@dataclass(frozen=True, slots=True)
class KnownAssignor:
    """An assignor that a setting can name, whether or not it will load."""

    name: str
    origin: str = "built in"


def known_assignors() -> Sequence[KnownAssignor]:
    """Return all that a setting can name; none of them is imported."""
    points = sorted(_points(), key=lambda each: each.name)
    return [
        *map(KnownAssignor, BUILT_IN),
        *(KnownAssignor(each.name, origin_of(each)) for each in points),
    ]


def find_assignor(name: str) -> AssignorFactory:
    """Return what makes the assignor of a name; raises `AssignorRefusedError`."""
    points = [each for each in _points() if each.name == name]
    if name in BUILT_IN:
        if points:
            raise AssignorRefusedError(
                f"assignor {name!r} is built in, and {origin_of(points[0])} goes by that name too:"
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
        raise AssignorRefusedError(f"{both} go by one name: uninstall all but one of them")
    return _load(points[0])


def _points() -> Sequence[EntryPoint]:
    """Return the entry points of all distributions that can be read."""
    try:
        return tuple(entry_points(group=GROUP))
    except USERS_ERRORS:
        return tuple(_sound_points())


def _sound_points() -> Iterator[EntryPoint]:
    """Yield entry points, one distribution after the other; of two of one name the first counts."""
    seen: set[str] = set()
    for dist in distributions():
        name = "a distribution without a name"
        try:
            name = dist.name
            found = dist.entry_points.select(group=GROUP)
        except USERS_ERRORS as error:
            LOGGER.warning("%s is broken, no assignor is taken from it: %s", name, describe(error))
            continue
        if name not in seen:
            seen.add(name)
            yield from found


def make_assignor(name: str, make: AssignorFactory, conf: Mapping[str, str]) -> ConnectAssignor:
    """Return an assignor that has been checked to be one; raises `AssignorRefusedError`."""
    try:
        made = make(conf)
        flaw = _flaw_in(made, name)
    except USERS_ERRORS as error:
        raise AssignorRefusedError(
            f"assignor {name!r} cannot be made: {describe(error)}"
        ) from error
    if flaw:
        raise AssignorRefusedError(f"assignor {name!r} is none: {flaw}; see ConnectAssignor")
    return made


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
            " mend or reinstall it, or take it out of group.local.assignors"
        ) from error
    if not callable(loaded):
        raise AssignorRefusedError(
            f"assignor {point.name!r} is a {type(loaded).__name__} ({origin_of(point)}): let it"
            " name a class, or a function, that makes an assignor from its configuration"
        )
    return cast("AssignorFactory", loaded)


def _flaw_in(made: object, name: str) -> str:
    """Return what keeps an object from being the assignor of this name, or nothing."""
    kind = type(made).__name__
    if missing := [each for each in METHODS if not callable(getattr(made, each, None))]:
        return f"{kind} has no method {', '.join(missing)}"
    for each in VERSIONS:
        if type(getattr(made, each, None)) is not int:
            return f"{kind}.{each} is not a whole number"
    own_name = getattr(made, "name", None)
    if own_name != name:
        return one_line(f"{kind}.name is {own_name!r}, and its entry point is called {name!r}")
    lowest, highest = (getattr(made, each, 0) for each in VERSIONS)
    return flaw_in_assignor(ClientAssignor(name, lowest, highest, highest))
