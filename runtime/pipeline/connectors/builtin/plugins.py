"""The connector classes that can be run here: those built in, and those that are installed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from ..spi import Connector, Delivery
from .spark_pipeline import SparkPipeline

GROUP = "fairlead.connectors"
LONGEST_COMPARED = 200
"""How much of a name is compared with those that there are: what is longer is none of them."""
BUILT_IN: tuple[type[Connector], ...] = (SparkPipeline,)


class PluginUnknown(Exception):  # noqa: N818  # says what it is about
    """No connector class of that name is installed here."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One connector class."""

    made_by: type[Connector]

    @property
    def name(self) -> str:
        """The full name: its module and its class, as they were when configs first named it."""
        return self.made_by.full_name or f"{self.made_by.__module__}.{self.made_by.__qualname__}"

    @property
    def short_name(self) -> str:
        """The class's name alone."""
        return self.made_by.__name__

    @property
    def delivery(self) -> Delivery:
        """What it promises about each row."""
        return self.made_by.delivery


@dataclass(frozen=True, slots=True)
class Plugins:
    """All that were found; `broken` says, by entry point, why others could not be loaded."""

    plugins: tuple[Plugin, ...]
    broken: Mapping[str, str]

    def find(self, name: str) -> Plugin:
        """Return a plugin by its full name, or by its short one if only one has it.

        Connect's aliases work: `X` also finds a class `XConnector`. Raises `PluginUnknown`.
        """
        for plugin in self.plugins:
            if plugin.name == name:
                return plugin
        wanted = {name, f"{name}Connector"}
        found = [plugin for plugin in self.plugins if plugin.short_name in wanted]
        if len(found) == 1:
            return found[0]
        raise PluginUnknown(self._complaint(name, found))

    def _complaint(self, name: str, found: Iterable[Plugin]) -> str:
        if names := ", ".join(plugin.name for plugin in found):
            return f"more than one connector class is called {name}: {names}"
        known = [plugin.short_name for plugin in self.plugins]
        near = get_close_matches(name[:LONGEST_COMPARED], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        why = "".join(f"; {each} could not be loaded: {self.broken[each]}" for each in self.broken)
        return f"no connector class {name[:LONGEST_COMPARED]} is installed here: {hint}{why}"


def find_plugins() -> Plugins:
    """Load the built-in classes and all that the entry-point group names."""
    found = [Plugin(each) for each in BUILT_IN]
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            plugin = Plugin(_load(point))
        except Exception as error:  # noqa: BLE001  # what others install may fail in any way
            broken[point.name] = f"{type(error).__name__}: {error}"
        else:
            found.append(plugin)
    return Plugins(tuple(dict.fromkeys(found)), broken)


def _load(point: EntryPoint) -> type[Connector]:
    loaded: object = point.load()
    if not (isinstance(loaded, type) and issubclass(loaded, Connector)):
        raise TypeError(f"{point.value} is no subclass of Connector")
    return loaded
