"""Plugin classes by name, built-in or entry points, and the name that pip knows fairlead by.

An entry point is loaded only when a config names it. Third-party code may fail in any way then;
only that config gets the error.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Final, Generic, TypeVar

from ...actors.misspelling import did_you_mean, most_similar
from .spi.errors import PluginUnknown

T = TypeVar("T")

DISTRIBUTION: Final = "fairlead-connect"
"""Not `fairlead`: on PyPI that name is the package of somebody else. One imports `fairlead`."""
_OF_MOST = "Connector"
LATEST = "latest"
"""Connect's name for the installed version."""
_NUMBERS = r"\d{1,9}(?:\.\d{1,9}){0,9}"
_RANGE = re.compile(rf"([\[(])\s*({_NUMBERS})?\s*,\s*({_NUMBERS})?\s*([\])])")
"""A version range in Maven's syntax: `[1.0,)`, `(1.0,2.0]`."""
LONGEST_SHOWN = 200
"""How many characters of an unknown name error messages show."""


@dataclass(frozen=True)
class InstalledClasses(Generic[T]):
    """The classes of one kind of plugin; built-in ones take precedence over entry points."""

    what: str
    """The name of the kind in messages."""
    group: str
    """The entry-point group."""
    base: type[T]
    built_in: Mapping[str, type[T]]
    listed: Sequence[str] = ()
    """The built-in names that error messages list; empty: all."""
    extras: tuple[EntryPoint, ...] = ()
    """Built-in classes that need an extra of pip, and are loaded as those of entry points."""

    def find(self, name: str) -> type[T]:
        """Return the class of a name; raises `PluginUnknown`."""
        if found := self.built_in.get(name):
            return found
        for point in self._points.select(name=name):
            return load(point, self.base, f"{self.what} {name}")
        known = (*(self.listed or self.built_in), *self.further)
        raise PluginUnknown(describe_unknown(self.what, name, known))

    @property
    def further(self) -> list[str]:
        """The names of the entry points, including those that cannot be loaded."""
        return sorted(set(self._points.names) - self.built_in.keys())

    @cached_property
    def _points(self) -> EntryPoints:
        return EntryPoints([*self.extras, *entry_points(group=self.group)])


def pip_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def load(point: EntryPoint, base: type[T], what: str) -> type[T]:
    """Load the class that an entry point names; raises `PluginUnknown`.

    The error names the pip extra to install if one of its libraries is missing.
    """
    try:
        loaded: object = point.load()
    except (Exception, SystemExit) as error:  # the module may even be a script that exits
        if isinstance(error, ModuleNotFoundError) and point.extras:
            of_whom = point.dist.name if point.dist else DISTRIBUTION
            extra = f"{of_whom}[{','.join(point.extras)}]"
            raise PluginUnknown(f"{what} needs {error.name}: pip install '{extra}'") from error
        why = f"{type(error).__name__}: {error}"
        raise PluginUnknown(f"{what} could not be loaded: {why}") from error
    if isinstance(loaded, type) and issubclass(loaded, base):
        return loaded
    raise PluginUnknown(f"{what} could not be loaded: {point.value} is no {base.__name__}")


INSTALLED_SINCE: Final = "one that was installed since the node started is seen after a restart"
"""The processes of a node look up once what is installed."""


def describe_unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return the error for an unknown plugin name, with the most similar or all known names."""
    names = list(known)
    there = f"there are {', '.join(names)}; {INSTALLED_SINCE}"
    hint = hint_by_last_part(name, names) or there
    return f"no {what} {name[:LONGEST_SHOWN]} is installed here: {hint}"


def hint_by_last_part(name: str, known: Iterable[str]) -> str:
    """Return a hint if a known name is similar to the last part of a dotted name; "" if none.

    That both end in `Connector`, as most classes do, makes them no more similar.
    """
    short = {each.removesuffix(_OF_MOST): each for each in known}
    meant = most_similar(name.rpartition(".")[2].removesuffix(_OF_MOST), short)
    return "" if meant is None else did_you_mean(short[meant])


def flaw_in_version(wanted: str, installed: str) -> str:
    """Return an error if the wanted version is not the installed one, or nothing (KIP-891).

    Only one version of a plugin is installed. It matches `latest`, its version with or without
    brackets, and each range that contains it.
    """
    if _is_meant(wanted.strip(), installed):
        return ""
    return (
        f"version {installed} is installed here, and no other: "
        f"give that, {LATEST}, or a range with it, such as [{installed},)"
    )


def _is_meant(wanted: str, installed: str) -> bool:
    if wanted in {LATEST, installed, f"[{installed}]"}:
        return True
    found = _RANGE.fullmatch(wanted)
    if found is None or not re.fullmatch(_NUMBERS, installed):
        return False
    opening, low, high, closing = found.groups()
    version = _numbers(installed)
    is_above = not low or version > _numbers(low) or (opening, version) == ("[", _numbers(low))
    is_below = not high or version < _numbers(high) or (closing, version) == ("]", _numbers(high))
    return is_above and is_below


def _numbers(version: str) -> list[int]:
    """Return a version's numbers without trailing zeros: 1.0 equals 1."""
    numbers = [int(each) for each in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers
