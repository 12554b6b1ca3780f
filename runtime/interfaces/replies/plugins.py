"""Connector classes, their keys, and what is found when a config is examined: Connect's shapes."""

from msgspec import Struct, field


class PluginInfo(Struct, frozen=True):
    """Connect's `PluginInfo`, with what the class promises about each row."""

    class_name: str = field(name="class")
    type: str
    """source or sink."""
    version: str
    delivery: str


class ConfigKeyInfo(Struct, frozen=True):
    """Connect's `ConfigKeyInfo`: one key of a connector class."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str
    order: int
    """Its place within the group, for a form."""
    width: str
    display_name: str
    dependents: tuple[str, ...]
    """The keys whose meaning hangs on this one."""


class ConfigValueInfo(Struct, frozen=True):
    """Connect's `ConfigValueInfo`: what was given for a key, and what is wrong with that."""

    name: str
    value: str | None
    """`********` for a secret."""
    recommended_values: tuple[str, ...]
    errors: tuple[str, ...]
    visible: bool


class ConfigInfo(Struct, frozen=True):
    """Connect's `ConfigInfo`: a key and its value."""

    definition: ConfigKeyInfo
    value: ConfigValueInfo


class ConfigInfos(Struct, frozen=True):
    """Connect's `ConfigInfos`: all that is wrong with a config; warnings do not refuse it."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]
    warnings: tuple[str, ...]
