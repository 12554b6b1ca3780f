"""Connectors are created and get other configs, one alone or several at once (DATA_PLANE §1).

Several are one decision: all of them, or none, and the epoch rises once at most.
"""

from collections.abc import Mapping, Sequence

from ....events.group import Group
from ....events.model import Resource, RunState, Why
from ....events.placement import placement_in, work_in
from ....events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    GroupMetadata,
    Record,
    TargetState,
)
from ...messages.errors import Error
from ...messages.orders import PutConnector, PutConnectors
from ..state.soft_state import Decision, SoftState, accept, bump, refuse
from ..state.validate import LONGEST_CONNECTOR, flaw_in_name, flaw_in_text

Config = Mapping[str, str]


def put_connector(group: Group, soft: SoftState, command: PutConnector, now_ms: int) -> Decision:
    """Create a connector, or change its config.

    The epoch rises for a new one, and for one whose placement has changed.
    """
    name = command.connector
    if refusal := _refusal(group, name, command.config) or _conflict(group, command):
        return refuse(soft, *refusal)
    changed = _changed(group, {name: command.config})
    records = _records(group, soft, changed, now_ms, command.principal)
    is_new = name not in group.connectors
    if is_new and command.initial_state is not RunState.RUNNING:
        records.append(TargetState(name, command.initial_state, now_ms, command.principal))
    records += _raise_epoch(group, changed, now_ms, command.principal)
    return accept(group, soft, records, created=is_new)


def put_connectors(group: Group, soft: SoftState, command: PutConnectors, now_ms: int) -> Decision:
    """Create several connectors, or change their configs: all, or none if any is refused."""
    found = ((name, _refusal(group, name, config)) for name, config in command.configs.items())
    refusals = {name: refusal for name, refusal in found if refusal is not None}
    if refusals:
        errors = {error for error, _ in refusals.values()}
        error = errors.pop() if len(errors) == 1 else Error.INVALID_CONFIG
        told = (f"connector {name!a}: {message}" for name, (_, message) in refusals.items())
        return refuse(soft, error, "\n".join(told))
    changed = _changed(group, command.configs)
    records = _records(group, soft, changed, now_ms, command.principal)
    records += _raise_epoch(group, changed, now_ms, command.principal)
    return accept(group, soft, records)


def _changed(group: Group, configs: Mapping[str, Config]) -> dict[str, Config]:
    """Return the configs that are not there already."""
    old = group.connectors
    return {
        name: config
        for name, config in configs.items()
        if name not in old or old[name].config != config
    }


def _records(
    group: Group,
    soft: SoftState,
    configs: Mapping[str, Config],
    now_ms: int,
    principal: str | None,
) -> list[Record]:
    """Return the records of changed configs, and the resources that they configure in addition."""

    def record(name: str, config: Config) -> ConnectorConfig:
        old = group.connectors.get(name)
        before = old.offsets_before if old else soft.facts.count_offsets(name)
        version = _version(old, config)
        return ConnectorConfig(
            name, dict(config), version, now_ms, offsets_before=before, actor=principal
        )

    records: list[Record] = [record(name, config) for name, config in configs.items()]
    if new := {Resource(name) for name in configs if name not in group.connectors}:
        records.append(ConnectorsTasksMetadata(group.configured | new))
    return records


def _version(old: ConnectorConfig | None, config: Config) -> int:
    """Return the version of a config; it rises only if the change affects the work.

    A new version restarts the connector.
    """
    if old is None:
        return 1
    return old.version + (work_in(old.config) != work_in(config))


def _raise_epoch(
    group: Group, configs: Mapping[str, Config], now_ms: int, principal: str | None
) -> Sequence[GroupMetadata]:
    """Return the rise of the epoch, if any connector is new or is to be placed otherwise."""
    old = group.connectors
    new = [name for name in configs if name not in old]
    moved = [
        name
        for name, config in configs.items()
        if name in old and placement_in(old[name].config) != placement_in(config)
    ]
    if not group.members or not (new or moved):
        return ()
    why = Why.CONNECTOR_ADDED if new else Why.PLACEMENT_CHANGED
    first, *others = (*new, *moved)
    subject = f"{first} and {len(others)} more" if others else first
    return (bump(group, why, subject, now_ms, principal),)


def _refusal(group: Group, name: str, config: Config) -> tuple[Error, str] | None:
    found = flaw_in_name(name, "the connector's name", LONGEST_CONNECTOR)
    if found := found or _flaw_in_config(config):
        return Error.INVALID_CONFIG, f"{found}; nothing was changed"
    old = group.connectors.get(name)
    if old is not None and old.deleting:
        message = f"connector {name} is being deleted: create it once it is gone"
        return Error.ALREADY_EXISTS, message
    return None


def _conflict(group: Group, command: PutConnector) -> tuple[Error, str] | None:
    """Return why a config is not for the connector as it is now, or for none."""
    name, old = command.connector, group.connectors.get(command.connector)
    if command.create_only and old is not None:
        message = f"connector {name} already exists and stays as it is: put its config to change it"
        return Error.ALREADY_EXISTS, message
    if command.replaces is None or (old and old.config in (command.replaces, command.config)):
        return None
    if old is None:
        return Error.UNKNOWN_CONNECTOR, f"Connector {name} not found"
    message = f"the config of connector {name} was changed meanwhile, and stays so: try again"
    return Error.ALREADY_EXISTS, message


def _flaw_in_config(config: Config) -> str:
    found = (flaw_in_text(key + value, f"the config's {key!a}") for key, value in config.items())
    return next((flaw for flaw in found if flaw), "")
