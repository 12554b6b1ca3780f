"""The properties of Connect's workers beside those of the node.

REST does not show what connectors inherit of their worker: its converters, its clients, its topics.
So its file is compared with the settings of the node, key by key.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from .....actors.settings import HIDDEN
from ....config.connect_worker import (
    REQUIRED,
    SHARED,
    hides_secret,
    is_of_clients,
    is_taken,
    meaning_of,
)
from ...replies.node import SettingList
from ..output.printing import Misused
from ..requests.client import Client

BROKERS: Final = "bootstrap.servers"
GROUP: Final = "group.id"
OFFSETS_TOPIC: Final = "offset.storage.topic"
PROVIDERS: Final = "config.providers"
CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_BY_BOTH: Final = "Offsets are then moved by both offset APIs."
_EFFECTS: Final[Mapping[str, str]] = {
    "exactly.once.source.support": "Without it here, sources write each record at least once.",
    BROKERS: f"Another Kafka, unless it is another name of the same. {_BY_BOTH}",
    OFFSETS_TOPIC: f"Where offsets of sources are. {_BY_BOTH}",
    GROUP: "Transactions of sources have it in their names: with another one here, tasks that still"
    " run there are not fenced.",
}
"""What a difference means, where that is more than what the key is for."""
_OF_NEW_TOPICS: Final = ("offset.storage.partitions", "offset.storage.replication.factor")
_OF_EACH_ALONE: Final = ("client.id", *(each for each in SHARED if each != GROUP), *_OF_NEW_TOPICS)
"""Keys whose difference changes nothing for a connector that moves."""
_OF_HOSTS: Final = {key: text for key, text in REQUIRED.items() if key != BROKERS}
_DEFAULTS: Final = {
    "connector.client.config.override.policy": "All",
    "exactly.once.source.support": "disabled",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "key.converter.schemas.enable": "true",
    "topic.creation.enable": "true",
    "topic.tracking.allow.reset": "true",
    "topic.tracking.enable": "true",
    "value.converter.schemas.enable": "true",
}
"""The values of Connect where none is given (`WorkerConfig`, `JsonConverterConfig`)."""
_OWN_PROVIDERS: Final = frozenset({"env", "file", "dir"})


class PropertyDifference(Struct, frozen=True):
    """A property that connectors inherit, and that the node has otherwise."""

    key: str
    there: str | None
    """Its value in the worker's file, ******** for a secret; null: it has none."""
    here: str | None
    meaning: str


class BothProperties:
    """The properties of a worker of Connect and those of the node."""

    def __init__(self, there: Mapping[str, str], here: Mapping[str, str]) -> None:
        """Compare with `here`, the settings of the node, whose secrets are hidden."""
        shown = {
            key: HIDDEN if hides_secret(key, text) else text.strip() for key, text in there.items()
        }
        self._there = _without_defaults(shown)
        self._here = _without_defaults({**_OF_HOSTS, **here})

    @property
    def group(self) -> str:
        """The group of the workers of Connect."""
        return self._there.get(GROUP, "")

    def differences(self) -> list[PropertyDifference]:
        """Return the properties that differ, in the order of the worker's file."""
        keys = dict.fromkeys((*self._there, *self._here))
        pairs = ((key, self._there.get(key), self._here.get(key)) for key in keys)
        return [
            PropertyDifference(key, there, here, _EFFECTS.get(key, meaning_of(key)))
            for key, there, here in pairs
            if there != here and _is_inherited(key)
        ]

    def others_among(self, keys: Sequence[str]) -> list[str]:
        """Return those of some properties that differ."""
        return [each for each in keys if self._there.get(each) != self._here.get(each)]

    def flaws_for(self, config: Mapping[str, str]) -> Iterator[str]:
        """Yield why a connector would do something else here: by what it inherits."""
        if not self._here.get(BROKERS):
            yield f"this node has no {BROKERS}, so no connector of Kafka Connect can run here"
        for converter in CONVERTERS:
            if config.get(converter):
                continue
            ours, theirs = (_family(each, converter) for each in (self._here, self._there))
            if ours != theirs:
                yield (
                    f"it inherits {converter}, which is {_told(theirs, converter)} there and"
                    f" {_told(ours, converter)} here"
                )
        for provider in self._missing_providers(config):
            yield (
                f"it refers to the provider {provider} of config.providers, which this node has not"
            )

    def _missing_providers(self, config: Mapping[str, str]) -> list[str]:
        theirs, ours = (_names(each.get(PROVIDERS, "")) for each in (self._there, self._here))
        known = {*ours, *_OWN_PROVIDERS}
        texts = "\n".join(config.values())
        return [each for each in theirs if each not in known and f"${{{each}:" in texts]


def read_properties(file: Path) -> dict[str, str]:
    """Return the properties in the file of a worker; raises `Misused`."""
    import javaproperties  # noqa: PLC0415  # slow, and rarely needed

    try:
        with file.open("rb") as opened:
            properties: dict[str, str] = javaproperties.load(opened)  # pyright: ignore[reportUnknownMemberType]
    except OSError as error:
        raise Misused(f"{file} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise Misused(f"{file} is not a valid .properties file: {error}") from None
    if not properties.get(GROUP):
        raise Misused(f"{file} has no group.id: give the file that Connect's workers start with")
    return properties


def fetch_settings(client: Client) -> dict[str, str]:
    """Return the settings of a node that are no defaults, its secrets hidden, and its group.

    Raises `Failed`.
    """
    return {
        each.name: each.value
        for each in client.get(SettingList, "settings").settings
        if each.value and (each.source != "default" or each.name == GROUP)
    }


def _without_defaults(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that say more than no value does."""
    return {key: text for key, text in properties.items() if text and text != _DEFAULTS.get(key)}


def _is_inherited(key: str) -> bool:
    """Return whether connectors have a property of their worker."""
    is_known = key == GROUP or is_taken(key) or is_of_clients(key)
    return is_known and key not in _OF_EACH_ALONE


def _family(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """Return a property and those of its family."""
    return {
        key: text for key, text in properties.items() if key == name or key.startswith(f"{name}.")
    }


def _told(family: Mapping[str, str], name: str) -> str:
    """Return a converter and its own keys in words."""
    keys = (f"{key}={text}" for key, text in family.items() if key != name)
    return " ".join((family.get(name, "Connect's default").rpartition(".")[2], *sorted(keys)))


def _names(listed: str) -> list[str]:
    return [name for each in listed.split(",") if (name := each.strip())]
