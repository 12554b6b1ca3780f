"""The definition of a setting: its domain, metadata and dataclass field; conflicts of settings."""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ....actors.settings import Convert, Setting, SettingType

SAME: Final = "="
"""Says that the setting has the same name in Kafka Connect, or in Kafka's broker."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The valid values of a kind of setting."""

    convert: Convert
    """Parses the text of a value; raises `ValueError`."""
    allowed: str
    """The valid values in words, for error messages."""
    unit: str = ""
    """The unit of a number; empty for texts."""
    type: SettingType = SettingType.STRING


class Contradiction(NamedTuple):
    """A conflict between settings: their keys, and a text that says which values are valid."""

    keys: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class NodeSetting(Setting):
    """One setting of a node."""

    in_connect: str = ""
    """Its name in Kafka Connect, or in Kafka's broker; empty if it has none there."""


def setting(domain: Domain, default: str | int, documentation: str, in_connect: str = "") -> Any:  # noqa: ANN401  # what a dataclass takes for a field
    """Return the dataclass field of a setting; the field's name is that of the setting."""
    node_setting = NodeSetting(
        "",
        domain.type,
        documentation,
        default,
        convert=domain.convert,
        allowed=domain.allowed,
        unit=domain.unit,
        in_connect=in_connect,
    )
    is_shown = domain.type is not SettingType.PASSWORD
    return field(default=default, repr=is_shown, metadata={NodeSetting: node_setting})


def handed_on(allowed: str, documentation: str) -> Any:  # noqa: ANN401
    """Return the dataclass field of settings that are passed through, such as `spark.conf.NAME`."""
    passed_on = NodeSetting("", SettingType.STRING, documentation, allowed=allowed)
    return field(default_factory=dict[str, str], repr=False, metadata={NodeSetting: passed_on})
