"""What each setting of a node has, and the fields that settings are."""

from dataclasses import dataclass, field
from typing import Any, Final

from ...actors.settings import Convert, Setting, SettingType

SAME: Final = "="
"""Stands for the name in Kafka Connect, or in Kafka's broker, where it is the same."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Which values settings of one kind let through."""

    convert: Convert
    """How a text becomes a value."""
    allowed: str
    """What is let through, in words."""
    unit: str = ""
    """What is counted; nothing: it is a plain word."""
    type: SettingType = SettingType.STRING


@dataclass(frozen=True, slots=True)
class NodeSetting(Setting):
    """One setting of a node, beside what each setting has."""

    in_connect: str = ""
    """The name that it has in Kafka Connect, or in Kafka's broker."""


def setting(domain: Domain, default: str | int, documentation: str, in_connect: str = "") -> Any:  # noqa: ANN401  # what a dataclass takes for a field
    """Return the field that a setting is; its name follows from the field's."""
    made = NodeSetting(
        "",
        domain.type,
        documentation,
        default,
        convert=domain.convert,
        allowed=domain.allowed,
        unit=domain.unit,
        in_connect=in_connect,
    )
    return field(default=default, metadata={NodeSetting: made})


def handed_on(allowed: str, documentation: str) -> Any:  # noqa: ANN401
    """Return the field of settings that are not fairlead's own, by the names they have there."""
    made = NodeSetting("", SettingType.STRING, documentation, allowed=allowed)
    return field(default_factory=dict[str, str], repr=False, metadata={NodeSetting: made})
