"""What is installed here by name: what is built in, and what entry points name.

Nothing is loaded before a config names it: what others install may fail in any way then, which is
told to that config, and hurts nobody else.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Generic, TypeVar

from ....actors.misspelling import hint
from ..spi.errors import PluginUnknown

T = TypeVar("T")

LATEST = "latest"
"""Connect's word for whichever version is installed."""
_NUMBERS = r"\d{1,9}(?:\.\d{1,9}){0,9}"
_RANGE = re.compile(rf"([\[(])\s*({_NUMBERS})?\s*,\s*({_NUMBERS})?\s*([\])])")
"""A range of versions as Maven spells it: `[1.0,)`, `(1.0,2.0]`."""
LONGEST_SHOWN = 200
"""How much of a name is shown that is none of those that there are."""


@dataclass(frozen=True)
class InstalledClasses(Generic[T]):
    """The classes of one kind: those built in, and then those of an entry-point group."""

    what: str
    """What people call the kind."""
    group: str
    base: type[T]
    built_in: Mapping[str, type[T]]
    told: Sequence[str] = ()
    """The names of those built in as people are told of them; empty: all."""

    def find(self, name: str) -> type[T]:
        """Return the class of a name; raises `PluginUnknown`."""
        if found := self.built_in.get(name):
            return found
        for point in self._points.select(name=name):
            return load(point, self.base, f"{self.what} {name}")
        known = (*(self.told or self.built_in), *self.further)
        raise PluginUnknown(describe_unknown(self.what, name, known))

    @property
    def further(self) -> list[str]:
        """The names of those that are not built in, what cannot be loaded included."""
        return sorted(set(self._points.names) - self.built_in.keys())

    @cached_property
    def _points(self) -> EntryPoints:
        return entry_points(group=self.group)


def load(point: EntryPoint, base: type[T], what: str) -> type[T]:
    """Load the class that an entry point names; raises `PluginUnknown`.

    One of ours that needs libraries which are not installed says which extra has them.
    """
    try:
        loaded: object = point.load()
    except (Exception, SystemExit) as error:  # a module may even be a script that ends
        if isinstance(error, ModuleNotFoundError) and point.extras and point.dist:
            extra = f"{point.dist.name}[{','.join(point.extras)}]"
            raise PluginUnknown(f"{what} needs {error.name}: pip install '{extra}'") from error
        why = f"{type(error).__name__}: {error}"
        raise PluginUnknown(f"{what} could not be loaded: {why}") from error
    if isinstance(loaded, type) and issubclass(loaded, base):
        return loaded
    raise PluginUnknown(f"{what} could not be loaded: {point.value} is no {base.__name__}")


def describe_unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no such thing, and what might be meant."""
    names = list(known)
    hint = hint_by_last_part(name, names) or f"there are {', '.join(names)}"
    return f"no {what} {name[:LONGEST_SHOWN]} is installed here: {hint}"


def hint_by_last_part(name: str, known: Iterable[str]) -> str:
    """Ask whether a known name was meant, if one is like the last part of this."""
    return hint(name.rpartition(".")[2], known)


def flaw_in_version(wanted: str, installed: str) -> str:
    """Return what is wrong with the version that a config asks for, or nothing (KIP-891).

    There is one of each plugin: `latest` means it, and so does its version, plain or in brackets,
    or a range that holds it.
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
    """Return a version's numbers, without zeros at the end: 1.0 is 1."""
    numbers = [int(each) for each in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers
