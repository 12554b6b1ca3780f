"""The connector classes of this installation: built-in ones and entry points."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points

from ..installed import LONGEST_SHOWN, flaw_in_version, hint_by_last_part, load
from ..spi.config import has_reference
from ..spi.connector import Connector, Delivery
from ..spi.errors import PluginUnknown
from ..spi.keys.common import CONNECTOR_CLASS, CONNECTOR_VERSION
from .connect_configs.makers import origin_of
from .connect_configs.table import hint_for
from .member_connector import MemberConnector

GROUP = "fairlead.connectors"
SOURCE_TYPE = "source.type"
SINK_TYPE = "sink.type"


def feeds_sink(config: Mapping[str, str]) -> bool:
    """Return whether a config of Connect's own class names a sink of fairlead's."""
    return SINK_TYPE in config


def is_pipeline(config: Mapping[str, str]) -> bool:
    """Return whether a config of Connect's own class names a source or a sink of fairlead's."""
    return SOURCE_TYPE in config or SINK_TYPE in config


@dataclass(frozen=True, slots=True)
class Plugin:
    """One connector class."""

    made_by: type[Connector]

    @property
    def name(self) -> str:
        """The full name: module and class, as when configs first named it."""
        return self.made_by.full_name or f"{self.made_by.__module__}.{self.made_by.__qualname__}"

    @property
    def short_name(self) -> str:
        """The class's name alone."""
        return self.made_by.__name__

    @property
    def delivery(self) -> Delivery:
        """The strongest guarantee that it can give."""
        return self.made_by.delivery

    def flaws_in_version(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return an error, by its key, if a config asks for another version of the class."""
        wanted = config.get(CONNECTOR_VERSION, "")
        if not (wanted and self.made_by.version) or has_reference(wanted):
            return {}
        flaw = flaw_in_version(wanted, self.made_by.version)
        return {CONNECTOR_VERSION: flaw} if flaw else {}


@dataclass(frozen=True, slots=True)
class Plugins:
    """The loaded plugins; `broken` has the error of each entry point that failed to load."""

    plugins: tuple[Plugin, ...]
    broken: Mapping[str, str]
    """The plugins that cannot be loaded, each with the reason."""
    others: tuple[str, ...] = ()
    """The connector classes that are not Python's, for errors."""

    def find(self, name: str) -> Plugin:
        """Return a plugin by its full name, or by its short name if that is unique.

        As in Connect, `X` also finds a class `XConnector`. Raises `PluginUnknown`.
        """
        for plugin in self.plugins:
            if plugin.name == name:
                return plugin
        wanted = {name, f"{name}Connector"}
        found = [plugin for plugin in self.plugins if plugin.short_name in wanted]
        if len(found) == 1:
            return found[0]
        raise PluginUnknown(self._complaint(name, found))

    def of(self, config: Mapping[str, str]) -> Plugin:
        """Return the plugin of a connector; raises `PluginUnknown`.

        A class that is none of these, with an end of fairlead's, is one of Kafka Connect's.
        """
        name = config.get(CONNECTOR_CLASS, "")
        if name and is_pipeline(config) and not self.has(name):
            from .plugin_pipeline import PluginPipeline  # noqa: PLC0415  # as in `find_plugins`

            return Plugin(PluginPipeline)
        return self.find(name)

    def has(self, name: str) -> bool:
        """Return whether `find` finds a plugin."""
        with suppress(PluginUnknown):
            self.find(name)
            return True
        return False

    def _complaint(self, name: str, plugins: Iterable[Plugin]) -> str:
        if names := ", ".join(plugin.name for plugin in plugins):
            return f"more than one connector class is called {name}: {names}"
        short = (
            *(each.short_name for each in self.plugins),
            *(each.rpartition(".")[2] for each in self.others),
        )
        hint = hint_by_last_part(name, short)
        available = ", ".join((*(plugin.name for plugin in self.plugins), *self.others))
        remarks = "".join(
            f"; {each}"
            for each in (hint, hint_for(name), origin_of(name), *self.broken.values())
            if each
        )
        return (
            "Failed to find any class that implements Connector and which name matches"
            f" {name[:LONGEST_SHOWN]}, available connectors are: {available}{remarks}"
        )


def find_plugins() -> Plugins:
    """Load the built-in classes and all that the entry-point group names."""
    from .spark_pipeline import SparkPipeline  # noqa: PLC0415  # takes half a second, and 50 MB

    plugins = [Plugin(SparkPipeline), Plugin(MemberConnector)]
    broken: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            made_by = load(point, Connector, point.name)  # type: ignore[type-abstract]
        except PluginUnknown as error:
            broken[point.name] = str(error)
        else:
            plugins.append(Plugin(made_by))
    return Plugins(tuple(dict.fromkeys(plugins)), broken)
