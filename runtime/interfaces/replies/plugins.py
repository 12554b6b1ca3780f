"""Connector classes, their keys, and what is wrong with a config of theirs, in Connect's shapes."""

from msgspec import Struct, field


class PluginInfo(Struct, frozen=True, omit_defaults=True):
    """Connect's `PluginInfo`."""

    class_name: str = field(name="class")
    type: str
    """source, sink, transformation or predicate."""
    version: str
    delivery: str = ""
    """The best that a connector class promises about each row."""


class ConfigKeyInfo(Struct, frozen=True):
    """Connect's `ConfigKeyInfo`: one key of a connector class."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str
    order_in_group: int
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

    definition: ConfigKeyInfo | None
    """None for a key that nobody defines."""
    value: ConfigValueInfo


class ConfigInfos(Struct, frozen=True, omit_defaults=True):
    """Connect's `ConfigInfos`: all that is wrong with a config; warnings do not refuse it."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]
    warnings: tuple[str, ...] = ()
