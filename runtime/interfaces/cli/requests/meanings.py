"""What a key means: one of a connector's config, or a setting of a node."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...replies.connectors import PluginInfo
from ..command.client import Client, client_of
from ..command.options import There
from ..command.printing import FactList, Failed, Section, Unreachable
from .plugins import fetch_keys


class KeyMeaning(Struct, frozen=True):
    """A key, and what it does."""

    key: str
    of: str
    """The plugin that knows it, or `node`."""
    type: str
    default: str
    meaning: str
    only_with: str = ""
    """What selects it, such as `source.type=kafka`."""


def find_meanings(place: There, name: str) -> list[KeyMeaning]:
    """Return the settings of a node with this name, and the keys, which a cluster is asked for.

    Raises `Unreachable` if there is no cluster, unless it is a setting.
    """
    found = find_settings(name)
    try:
        found += _find_keys(client_of(place), name)
    except Unreachable:
        if not found:
            raise
    except Failed:  # what answers there is no cluster
        pass
    return found


def _find_keys(client: Client, name: str) -> Iterator[KeyMeaning]:
    """Yield the keys of all connector classes that have this name."""
    for plugin in client.get(list[PluginInfo], "connector-plugins"):
        for each in fetch_keys(client, plugin.class_name):
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
    """Return the setting of a node with this name, [] if there is none."""
    from ....config.keys import SETTINGS  # noqa: PLC0415  # most names are of resources

    found = SETTINGS.get(name)
    if found is None:
        return []
    told = f"{found.documentation} Allowed: {found.allowed}."
    return [KeyMeaning(name, "node", found.type.value.lower(), str(found.default), told)]


def meaning_tables(found: Sequence[KeyMeaning]) -> list[Section]:
    """Return a list of facts for each of the keys."""
    return [
        FactList(
            (
                ("Key", each.key),
                ("Of", "a node's settings" if each.of == "node" else each.of),
                ("With", each.only_with),
                ("Type", each.type),
                ("Default", each.default),
                ("Meaning", each.meaning),
            )
        )
        for each in found
    ]
