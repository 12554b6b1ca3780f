"""Plugins and their keys: connector classes, their types of sources and sinks, and all others.

The types come from the keys of the connector classes, which say with which type a key goes. A
source and a sink of one name, such as `postgres`, are described together. What a key means can also
be asked of a node: one of a config, or a setting.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from ...replies.connectors import ConfigKeyInfo, PluginInfo
from ..adapters.parameters import Option
from ..output.layout import TableLayout
from ..output.printing import Failed, Section, Unreachable
from .client import Client, RefusedByCluster, find_client
from .options import RemoteOptions
from .several import pick

ENDS: Final = {"source.type": "source type", "sink.type": "sink type"}
"""The keys that select a type, and what `get plugins` calls their values."""


class PluginInFull(PluginInfo, frozen=True, kw_only=True):
    """A plugin with its keys."""

    configs: list[ConfigKeyInfo]


@dataclass(frozen=True, slots=True)
class KeySearch:
    """Which keys of a plugin are shown; with texts alone that are empty, all."""

    search: Annotated[
        str, Option("--search", metavar="WORD", help="Of plugins: only keys that tell of it.")
    ] = ""
    search_name: Annotated[
        str, Option("--search-name", metavar="WORD", help="Of plugins: only keys called so.")
    ] = ""
    search_description: Annotated[
        str,
        Option("--search-description", metavar="WORD", help="Of plugins: only keys that mean it."),
    ] = ""

    @property
    def is_any(self) -> bool:
        """Whether keys are searched at all."""
        return self != KeySearch()

    def finds(self, key: ConfigKeyInfo) -> bool:
        """Return whether a key is found, in upper or lower case."""
        name, told = key.name.lower(), key.documentation.lower()
        return (
            (self.search.lower() in name or self.search.lower() in told)
            and self.search_name.lower() in name
            and self.search_description.lower() in told
        )


def fetch_plugins(client: Client, names: Sequence[str]) -> list[PluginInfo]:
    """Return connector classes, and the types of sources and sinks that they know."""
    classes = client.get(list[PluginInfo], "connector-plugins")
    types = [
        PluginInfo(class_name=name, type=ENDS[end], version=each.version)
        for each in classes
        for end, name in _types_of(client, each)
    ]
    return pick("plugin", names, [*classes, *types], list_plugin_names)


def _types_of(client: Client, plugin: PluginInfo) -> list[tuple[str, str]]:
    """Return the types of a connector class; none if its keys cannot be told.

    Plugins of Kafka Connect, of which no delivery is told, have none: a JVM would start to say so.
    """
    with suppress(RefusedByCluster):
        if not plugin.delivery:
            return []
        return list_types(fetch_keys(client, plugin.class_name))
    return []


def fetch_all_plugins(client: Client, names: Sequence[str]) -> list[PluginInfo]:
    """Return plugins of all types, not connector classes alone."""
    others = client.get(list[PluginInfo], "connector-plugins", connectorsOnly="false")
    of_classes = fetch_plugins(client, ())
    there = {(each.class_name, each.type) for each in of_classes}
    more = [each for each in others if (each.class_name, each.type) not in there]
    return pick("plugin", names, [*of_classes, *more], list_plugin_names)


def fetch_plugin(client: Client, name: str) -> PluginInFull:
    """Return a plugin with its keys; a type of sources and sinks has those of both."""
    classes = client.get(list[PluginInfo], "connector-plugins")
    named = [each for each in classes if name in list_plugin_names(each)]
    if not named:
        for each in classes:
            if ends := [end for end, found in _types_of(client, each) if found == name]:
                keys = fetch_keys(client, each.class_name)
                kind = ", ".join(ENDS[end] for end in ends)
                own = select_keys(keys, ends, name)
                return PluginInFull(class_name=name, type=kind, version=each.version, configs=own)
    plugin = (named or fetch_all_plugins(client, [name]))[0]
    return PluginInFull(**asdict(plugin), configs=fetch_keys(client, plugin.class_name))


def fetch_keys(client: Client, plugin: str) -> list[ConfigKeyInfo]:
    """Return all keys of a plugin."""
    return client.get(list[ConfigKeyInfo], "connector-plugins", plugin, "config")


def list_types(keys: Sequence[ConfigKeyInfo]) -> list[tuple[str, str]]:
    """Return the types in the keys of a connector class: `source.type` and `postgres`, sorted."""
    told = [(end, name) for each in keys for end, _, name in [each.only_with.partition("=")]]
    usual = [(each.name, each.default_value or "") for each in keys]
    return sorted({each for each in (*told, *usual) if each[0] in ENDS and each[1]})


def select_keys(
    keys: Sequence[ConfigKeyInfo], ends: Sequence[str], name: str
) -> list[ConfigKeyInfo]:
    """Return the keys that go with a type; those of the usual type stand among the others."""
    usual: Mapping[str, str | None] = {each.name: each.default_value for each in keys}
    selected: list[ConfigKeyInfo] = []
    for end in ends:
        if usual.get(end) == name:
            before = end.removesuffix("type")
            own = [each for each in keys if not each.only_with and each.name.startswith(before)]
            selected += [
                replace(each, only_with=f"{end}={name}") for each in own if each.name != end
            ]
        selected += [each for each in keys if each.only_with == f"{end}={name}"]
    return selected


def filter_keys(plugin: PluginInFull, search: KeySearch) -> PluginInFull:
    """Return a plugin with the keys that are searched."""
    return replace(plugin, configs=[each for each in plugin.configs if search.finds(each)])


def list_plugin_names(plugin: PluginInfo) -> Sequence[str]:
    """Return the short name of a plugin, that of its class, and Connect's alias."""
    short = plugin.class_name.rpartition(".")[2]
    return short, plugin.class_name, short.removesuffix("Connector")


PLUGINS: Final = TableLayout(
    PluginInfo,
    "NAME: class_name, TYPE: type, VERSION: version, DELIVERY: delivery, MODULE: class_name",
    {"NAME": lambda it: it.rpartition(".")[2], "MODULE": lambda it: it.rpartition(".")[0]},
    empty="no plugins",
)
PLUGIN_FACTS: Final = TableLayout(
    PluginInFull, "Class: class_name, Type: type, Version: version, Delivery: delivery"
)
KEYS: Final = TableLayout(
    ConfigKeyInfo,
    "KEY: name, TYPE: type, DEFAULT, MEANING: documentation",
    {
        "TYPE": str.lower,
        "DEFAULT": lambda it: "required" if it.required else it.default_value,
    },
    empty="no keys",
    rigid=True,
)


def tabulate_plugins(plugins: Sequence[PluginInfo]) -> list[Section]:
    """Lay out plugins."""
    return [PLUGINS.lay_out(plugins)]


def tabulate_plugin(plugin: PluginInFull) -> list[Section]:
    """Lay out one plugin: its keys by what selects them, first those that go with any config."""
    keys: dict[str, list[ConfigKeyInfo]] = {}
    for each in plugin.configs:
        keys.setdefault(f"Keys with {each.only_with}" if each.only_with else "", []).append(each)
    tables = [KEYS.lay_out(each, title) for title, each in keys.items()]
    return [PLUGIN_FACTS.lay_out_facts(plugin), *(tables or [KEYS.lay_out(())])]


class KeyMeaning(Struct, frozen=True):
    """A config key and its meaning."""

    key: str
    of: str
    """The plugin that knows it, or `node`."""
    type: str
    default: str
    meaning: str
    only_with: str = ""
    """What selects it, such as `source.type=kafka`."""


def find_meanings(options: RemoteOptions, name: str) -> list[KeyMeaning]:
    """Return the settings of a node with this name, and the keys, which a cluster is asked for.

    Raises `Unreachable` if there is no cluster, unless it is a setting.
    """
    meanings = find_settings(name)
    try:
        meanings += _find_keys(find_client(options), name)
    except Unreachable:
        if not meanings:
            raise
    except Failed:  # what answers there is no cluster
        pass
    return meanings


def _find_keys(client: Client, name: str) -> Iterator[KeyMeaning]:
    """Yield the keys of all connector classes that have this name."""
    for plugin in client.get(list[PluginInfo], "connector-plugins"):
        keys: list[ConfigKeyInfo] = []
        with suppress(RefusedByCluster):  # one plugin that fails hides no key of another
            keys = fetch_keys(client, plugin.class_name)
        for each in keys:
            if each.name == name:
                yield KeyMeaning(
                    each.name,
                    plugin.class_name.rpartition(".")[2],
                    each.type.lower(),
                    "required" if each.required else each.default_value or "",
                    each.documentation,
                    each.only_with,
                )


def find_settings(name: str) -> list[KeyMeaning]:
    """Return the node's setting of this name, in a list; empty if there is none."""
    from ....config.keys import SETTINGS  # noqa: PLC0415  # most names are of resources

    found = SETTINGS.get(name)
    if found is None:
        return []
    told = f"{found.documentation} Allowed: {found.allowed}."
    return [KeyMeaning(name, "node", found.type.value.lower(), str(found.default), told)]


MEANING: Final = TableLayout(
    KeyMeaning,
    "Key: key, Of: of, With: only_with, Type: type, Default: default, Meaning: meaning",
    {"Of": lambda of: "a node's settings" if of == "node" else of},
)


def tabulate_meanings(keys: Sequence[KeyMeaning]) -> list[Section]:
    """Lay out what each of the keys means."""
    return [MEANING.lay_out_facts(each) for each in keys]
