"""A group's own settings: what they are, and how they are changed while it runs.

A group has its node's settings, which its own replace (GroupConfiguration, key type 8). A change is
checked as a whole and takes effect at once. It raises no epoch, and a recorded deadline does not
move. Names and values that this version does not know, which a later one may have written, are kept
and ignored; so are a session and bounds that the node's settings no longer allow.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....events.group import Group
from ....events.records import GroupConfiguration, Record, Tombstone
from ...messages.errors import Error
from ...messages.members import NO_COORDINATOR_EPOCH
from ...messages.orders import ConfigureGroup
from ...misspelling import hint
from ...settings import Setting, SettingType, whole
from ...worker.instructions import flaw_in_session
from ..state.settings import GroupSettings, MigrationPolicy, flaw_in_bounds
from ..state.soft_state import (
    NO_FACTS,
    Decision,
    DecisionFacts,
    SoftState,
    accept,
    refuse,
)
from ..state.validate import LARGEST_NUMBER, LONGEST_SESSION_MS

LONGEST_SHOWN = 60
"""How many characters of a refused key or value are in the message."""


def _number(  # a row of the table below
    name: str, least: int, most: int, unit: str, documentation: str
) -> Setting:
    allowed = f"a whole number of {unit}, from {least} to {most}"
    return Setting(
        name,
        SettingType.INT,
        documentation,
        convert=whole(least, most),
        allowed=allowed,
        unit=unit,
    )


FIELDS: Mapping[str, Setting] = {
    "session_timeout_ms": _number(
        "session.timeout.ms",
        1,
        LONGEST_SESSION_MS,
        "milliseconds",
        "A worker that is silent for so long has lost its work to others.",
    ),
    "heartbeat_interval_ms": _number(
        "heartbeat.interval.ms",
        1,
        LARGEST_NUMBER,
        "milliseconds",
        "How often a worker reports when there is nothing to say.",
    ),
    "max_delay_ms": _number(
        "scheduled.rebalance.max.delay.ms",
        0,
        LARGEST_NUMBER,
        "milliseconds",
        "How long the work of a lost worker waits for its return. 0: not at all.",
    ),
    "leave_delay_ms": _number(
        "scheduled.rebalance.leave.delay.ms",
        -1,
        LARGEST_NUMBER,
        "milliseconds",
        "How long the work of a worker that left in good order waits for its return. -1: as long"
        " as that of a lost one, as in Connect; 0: not at all.",
    ),
    "max_size": _number(
        "group.max.size",
        1,
        LARGEST_NUMBER,
        "members",
        "How many members the group can have; who is in it stays.",
    ),
    "assignment_interval_ms": _number(
        "assignment.interval.ms",
        0,
        LARGEST_NUMBER,
        "milliseconds",
        "The least time between two computations of a target. 0: none.",
    ),
    "initial_delay_ms": _number(
        "group.initial.rebalance.delay.ms",
        0,
        LARGEST_NUMBER,
        "milliseconds",
        "How long an empty group of the classic protocol waits for more members before it"
        " assigns. 0: not at all.",
    ),
    "least_classic_session_ms": _number(
        "group.min.session.timeout.ms",
        1,
        LARGEST_NUMBER,
        "milliseconds",
        "The shortest session that a classic member may ask for.",
    ),
    "longest_classic_session_ms": _number(
        "group.max.session.timeout.ms",
        1,
        LARGEST_NUMBER,
        "milliseconds",
        "The longest session that a classic member may ask for.",
    ),
    "connect_initial_delay_ms": _number(
        "connect.initial.rebalance.delay.ms",
        0,
        LARGEST_NUMBER,
        "milliseconds",
        "How long an empty connect group waits for more members before its first target. 0: not"
        " at all.",
    ),
    "migration_policy": Setting(
        "group.migration.policy",
        SettingType.STRING,
        "Whether a group with members goes over to the connect protocol (upgrade), and back.",
        convert=MigrationPolicy,
        allowed=", ".join(MigrationPolicy),
    ),
    "requests_per_second": _number(
        "member.request.rate",
        0,
        100_000,
        "requests a second",
        "How many heartbeats a member may send before it is told to wait. 0: any number.",
    ),
}
"""The settings by the field of `GroupSettings` that each of them is."""

SETTINGS: Mapping[str, Setting] = {each.name: each for each in FIELDS.values()}
"""The settings that a group can have of its own, by name."""


def open_soft_state(
    node: GroupSettings,
    group: Group,
    coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    facts: DecisionFacts = NO_FACTS,
) -> SoftState:
    """Return the empty soft state beside a group that was rebuilt from its log."""
    settings = effective(node, group.configs)
    return SoftState(settings, node=node, coordinator_epoch=coordinator_epoch, facts=facts)


def effective(node: GroupSettings, configs: Mapping[str, str]) -> GroupSettings:
    """Return the settings of a group: its node's, replaced by its own."""
    settings = _apply(node, configs)
    if _flaw_in_session(settings):
        settings = replace(
            settings,
            session_timeout_ms=node.session_timeout_ms,
            heartbeat_interval_ms=node.heartbeat_interval_ms,
        )
    if _flaw_in_bounds(settings):
        settings = replace(
            settings,
            least_classic_session_ms=node.least_classic_session_ms,
            longest_classic_session_ms=node.longest_classic_session_ms,
        )
    return settings


def configure_group(group: Group, soft: SoftState, command: ConfigureGroup, _: int) -> Decision:
    """Change settings of the group, all or none; INVALID_CONFIG has the reason."""
    node = soft.node or soft.settings
    if found := [*_flaws(group, command.configs)]:
        return _refuse(soft, "; ".join(found))
    merged = {**group.configs, **command.configs}
    configs = {key: merged[key] for key in sorted(merged) if merged[key] is not None}
    kept = {key: str(value) for key, value in configs.items()}
    settings = _apply(node, kept)
    flaw = _flaw_in_session(settings) or _flaw_in_bounds(settings)
    if flaw := flaw or _flaw_in_members(group, soft.settings, settings):
        return _refuse(soft, flaw)
    if kept == group.configs:
        return accept(group, soft, ())
    record: Record = GroupConfiguration(kept) if kept else Tombstone(GroupConfiguration, ())
    return accept(group, replace(soft, settings=settings, node=node), (record,))


def _apply(node: GroupSettings, configs: Mapping[str, str]) -> GroupSettings:
    values = {
        field: value
        for field, setting in FIELDS.items()
        if setting.name in configs and (value := _parse(setting, configs[setting.name])) is not None
    }
    return replace(node, **values)  # type: ignore[arg-type]


def _parse(setting: Setting, text: str) -> int | MigrationPolicy | None:
    """Return the value that a text spells, None if it is not allowed."""
    try:
        value = setting.parse(text)
    except ValueError:
        return None
    return value if isinstance(value, int | MigrationPolicy) else None


def _flaws(group: Group, configs: Mapping[str, str | None]) -> Iterator[str]:
    """Yield what is wrong with each name, and with each value.

    A setting in the log may be removed even if this version does not know it.
    """
    for key, value in configs.items():
        setting = SETTINGS.get(key)
        if setting is None and not (value is None and key in group.configs):
            advice = hint(key, SETTINGS) or f"a group has {', '.join(sorted(SETTINGS))}"
            yield f"unknown setting {key[:LONGEST_SHOWN]!a}: {advice}"
        elif setting is not None and value is not None and _parse(setting, value) is None:
            yield f"{key} = {value[:LONGEST_SHOWN]!a}: allowed is {setting.allowed}"


def _flaw_in_session(settings: GroupSettings) -> str:
    return flaw_in_session(
        settings.session_timeout_ms, settings.heartbeat_interval_ms, settings.fence_margin_ms
    )


def _flaw_in_bounds(settings: GroupSettings) -> str:
    return flaw_in_bounds(settings.least_classic_session_ms, settings.longest_classic_session_ms)


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
