"""Requests about configs: to change them, to go back, and to try them without any change."""

from collections.abc import Mapping
from typing import Final

from msgspec.json import Decoder

from ...replies.connectors import (
    ConfigDiff,
    ConfigInfos,
    ConfigKeyInfo,
    ConnectorInfo,
    PluginInfo,
    RevisionList,
    SampleDescription,
)
from ..sending.requests import NodeRequest, get

ConfigValue = str | int | float | bool
Config = Mapping[str, ConfigValue]

INFO: Final = Decoder(ConnectorInfo)
CONFIG: Final = Decoder(dict[str, str])
DIFF: Final = Decoder(ConfigDiff)
DIFFS: Final = Decoder(list[ConfigDiff])
REVISIONS: Final = Decoder(RevisionList)
SAMPLE: Final = Decoder(SampleDescription)
PLUGINS: Final = Decoder(list[PluginInfo])
KEYS: Final = Decoder(list[ConfigKeyInfo])
VALIDATION: Final = Decoder(ConfigInfos)


def get_config(name: str) -> NodeRequest[dict[str, str]]:
    """Return the config of a connector; secret values are hidden."""
    return get(CONFIG, "connectors", name, "config")


def put_config(name: str, config: Config) -> NodeRequest[ConnectorInfo]:
    """Create a connector, or replace its config."""
    path = ("connectors", name, "config")
    return NodeRequest("PUT", path, INFO, {"extended": True}, config)


def patch_config(
    name: str, changes: Mapping[str, ConfigValue | None]
) -> NodeRequest[ConnectorInfo]:
    """Change keys of a config, and remove those that are None."""
    path = ("connectors", name, "config")
    return NodeRequest("PATCH", path, INFO, {"extended": True}, changes)


def diff_config(name: str, config: Config) -> NodeRequest[ConfigDiff]:
    """Validate a config, and return what `put_config` would change; nothing is changed."""
    return NodeRequest("PUT", ("connectors", name, "config", "diff"), DIFF, {}, config)


def apply(configs: Mapping[str, Config], *, dry_run: bool = False) -> NodeRequest[list[ConfigDiff]]:
    """Create connectors and replace configs: all of them in one epoch, or none if one is refused.

    The answer says what has changed in each, or what would with `dry_run`.
    """
    connectors = [{"name": name, "config": each} for name, each in configs.items()]
    return NodeRequest(
        "POST", ("apply",), DIFFS, {}, {"connectors": connectors, "dry_run": dry_run}
    )


def list_revisions(name: str) -> NodeRequest[RevisionList]:
    """List the configs that a connector has had, the present one last."""
    return get(REVISIONS, "connectors", name, "revisions")


def roll_back(name: str, revision: int | None = None) -> NodeRequest[ConnectorInfo]:
    """Give a connector a config again that it has had, with its secrets; None: the one before.

    The config is validated anew, and becomes a new revision; offsets stay as they are.
    """
    body = {"revision": revision}
    return NodeRequest("POST", ("connectors", name, "rollback"), INFO, {}, body)


def read_sample(name: str, config: Config) -> NodeRequest[SampleDescription]:
    """Read ten rows as a config would have them read and transformed; nothing is changed.

    A hidden secret is that of the connector of this name, which need not exist.
    """
    return NodeRequest("POST", ("sample",), SAMPLE, {}, {"name": name, "config": config})


def list_plugins(*, connectors_only: bool = False) -> NodeRequest[list[PluginInfo]]:
    """List the connector classes, and the converters, transforms and predicates."""
    return get(PLUGINS, "connector-plugins", connectorsOnly=connectors_only, extended=True)


def list_plugin_keys(plugin: str, version: str = "latest") -> NodeRequest[list[ConfigKeyInfo]]:
    """List the keys of a connector class, a converter, a transform or a predicate."""
    return get(KEYS, "connector-plugins", plugin, "config", version=version, extended=True)


def validate(plugin: str, config: Config) -> NodeRequest[ConfigInfos]:
    """Validate a config of a connector class; nothing is changed.

    The errors are in the values of `configs`; `error_count` says how many there are.
    """
    path = ("connector-plugins", plugin, "config", "validate")
    return NodeRequest("PUT", path, VALIDATION, {"extended": True}, config)
