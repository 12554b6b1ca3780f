"""A group's own settings are changed while it runs (GroupConfiguration, key type 8).

A change is checked as a whole and takes effect at once. It raises no epoch, and a recorded deadline
does not move. `own_settings` has the settings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....events.group import Group
from ....events.records import GroupConfiguration, Record, Tombstone
from ...messages.errors import Error
from ...messages.members import NO_COORDINATOR_EPOCH
from ...messages.orders import ConfigureGroup
from ...misspelling import hint
from ..state.own_settings import (
    OF_NODE,
    OwnSettings,
    apply_configs,
    effective,
    flaw_in_bounds,
    flaw_in_session,
    parse,
)
from ..state.settings import GroupSettings
from ..state.soft_state import (
    NO_FACTS,
    Decision,
    DecisionFacts,
    SoftState,
    accept,
    refuse,
)

LONGEST_SHOWN = 60
"""How many characters of a refused key or value are in the message."""


def open_soft_state(
    node: GroupSettings,
    group: Group,
    coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    facts: DecisionFacts = NO_FACTS,
    own: OwnSettings = OF_NODE,
) -> SoftState:
    """Return the empty soft state beside a group that was rebuilt from its log."""
    settings = effective(node, group.configs, own)
    return SoftState(settings, node=node, coordinator_epoch=coordinator_epoch, facts=facts, own=own)


def configure_group(group: Group, soft: SoftState, command: ConfigureGroup, _: int) -> Decision:
    """Change settings of the group, all or none; INVALID_CONFIG has the reason."""
    changes, node = _changes(group, command), soft.node or soft.settings
    if found := [*_flaws(group, changes, soft.own)]:
        return _refuse(soft, "; ".join(found))
    merged = {**group.configs, **changes}
    kept = {key: text for key in sorted(merged) if (text := merged[key]) is not None}
    settings = apply_configs(node, kept, soft.own)
    flaw = flaw_in_session(settings, soft.own) or flaw_in_bounds(settings)
    if soft.own.members_fence:
        flaw = flaw or _flaw_in_members(group, soft.settings, settings)
    if flaw:
        return _refuse(soft, flaw)
    if kept == group.configs or command.validate_only:
        return accept(group, soft, ())
    record: Record = GroupConfiguration(kept) if kept else Tombstone(GroupConfiguration, ())
    return accept(group, replace(soft, settings=settings, node=node), (record,))


def _changes(group: Group, command: ConfigureGroup) -> Mapping[str, str | None]:
    """Return the new value of each setting that is named, or that all others replace."""
    others = dict.fromkeys(group.configs) if command.replaces_all else {}
    return {**others, **command.configs}


def _flaws(group: Group, configs: Mapping[str, str | None], own: OwnSettings) -> Iterator[str]:
    """Yield what is wrong with each name, and with each value.

    A setting in the log may be removed even if this version does not know it.
    """
    for key, value in configs.items():
        setting = own.names.get(key)
        if setting is None and not (value is None and key in group.configs):
            advice = hint(key, own.names) or f"a group has {', '.join(sorted(own.names))}"
            yield f"unknown setting {key[:LONGEST_SHOWN]!a}: {advice}"
        elif setting is not None and value is not None and parse(setting, value) is None:
            yield f"{key} = {value[:LONGEST_SHOWN]!a}: allowed is {setting.allowed}"


def _flaw_in_members(group: Group, before: GroupSettings, after: GroupSettings) -> str:
    """Return the member whose rebalance timeout would be shorter than the new session."""
    session_ms = after.session_timeout_ms
    if session_ms <= before.session_timeout_ms:
        return ""
    shortest = min(
        (member.metadata for member in group.members.values()),
        key=lambda metadata: metadata.rebalance_timeout_ms,
        default=None,
    )
    if shortest is None or shortest.rebalance_timeout_ms >= session_ms:
        return ""
    return (
        f"session.timeout.ms = {session_ms} is longer than the rebalance timeout of"
        f" {shortest.rebalance_timeout_ms} ms of member {shortest.member_id}: raise"
        " rebalance.timeout.ms at its node first, or choose a shorter session"
    )


def _refuse(soft: SoftState, message: str) -> Decision:
    return refuse(soft, Error.INVALID_CONFIG, f"{message}; nothing was changed")
