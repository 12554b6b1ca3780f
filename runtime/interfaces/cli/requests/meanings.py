"""What a key means: one of a connector's config, or a setting of a node."""

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from ...replies.connectors import PluginInfo
from ..command.client import client_of
from ..command.options import There
from ..command.printing import FactList, Failed, Section
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
    """Return the settings of a node with this name, and the keys if a cluster is there to ask."""
    found = _settings(name)
    with suppress(Failed):
        client = client_of(place)
        for plugin in client.get(list[PluginInfo], "connector-plugins"):
            found += [
                KeyMeaning(
                    each.name,
                    plugin.class_name.rpartition(".")[2],
                    each.type.lower(),
                    "required" if each.required else each.default_value or "",
                    each.documentation,
                    each.only_with,
                )
                for each in fetch_keys(client, plugin.class_name)
                if each.name == name
            ]
    return found


def _settings(name: str) -> list[KeyMeaning]:
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
