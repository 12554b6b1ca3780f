"""The settings that a group may have of its own, by the kinds of groups, and their effect.

A group has its node's settings, which its own replace. Which of them are of use depends on who is
in the group: workers have those of `FIELDS`, consumers those of `CONSUMER_FIELDS`, three of which
have Kafka's names and Kafka's bounds (GroupConfig, KIP-848). Any other group than the node's own
takes the names of both, as nobody is in it yet when it is configured first. Names and values that
this version does not know, which a later one may have written, are kept and ignored; so are a
session and bounds that the node's settings no longer allow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...messages.groups import GroupSetting
from ...settings import Setting, SettingType, whole
from ...worker.instructions import flaw_in_session as flaw_in_times
from .settings import GroupSettings, MigrationPolicy
from .settings import flaw_in_bounds as flaw_in_both
from .validate import LARGEST_NUMBER, LONGEST_SESSION_MS


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


_OF_WORKERS: Final = frozenset(
    {"max_delay_ms", "leave_delay_ms", "connect_initial_delay_ms", "requests_per_second"}
)
"""What is of no use in a group of consumers."""

_CONSUMER_NAMES: Final[Mapping[str, Setting]] = {
    "session_timeout_ms": _number(
        "consumer.session.timeout.ms",
        45_000,
        60_000,
        "milliseconds",
        "A consumer of group.protocol=consumer that is silent for so long has left the group.",
    ),
    "heartbeat_interval_ms": _number(
        "consumer.heartbeat.interval.ms",
        5_000,
        15_000,
        "milliseconds",
        "How often such a consumer reports.",
    ),
    "assignment_interval_ms": _number(
        "consumer.assignment.interval.ms",
        0,
        15_000,
        "milliseconds",
        "The least time between two computations of a target of such consumers. 0: none.",
    ),
}
"""What has another name, and Kafka's bounds, in a group of consumers."""

CONSUMER_FIELDS: Final[Mapping[str, Setting]] = {
    field: _CONSUMER_NAMES.get(field, setting)
    for field, setting in FIELDS.items()
    if field not in _OF_WORKERS
}
"""The settings of a group of consumers, by the field that each of them is."""


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """Which settings a kind of group may have of its own."""

    fields: Mapping[str, Setting]
    """Those that take effect, by the field of `GroupSettings` that each of them is."""
    names: Mapping[str, Setting]
    """Those that may be set, by name."""
    members_fence: bool = True
    """Whether members fence themselves: a session has to leave each the time for that."""
    outlive_group: bool = False
    """Whether they stay when the group is deleted, as at a broker."""


SETTINGS: Final[Mapping[str, Setting]] = {each.name: each for each in FIELDS.values()}
"""The settings that the node's own group can have, by name."""
CLIENT_SETTINGS: Final[Mapping[str, Setting]] = {
    **SETTINGS,
    **{each.name: each for each in _CONSUMER_NAMES.values()},
}
"""The settings that any other group can have, by name."""
FIELD_OF: Final[Mapping[str, str]] = {
    setting.name: field for table in (FIELDS, CONSUMER_FIELDS) for field, setting in table.items()
}
"""The field of `GroupSettings` that each of them is, by name."""

OF_NODE: Final = OwnSettings(FIELDS, SETTINGS)
OF_CONNECT: Final = OwnSettings(FIELDS, CLIENT_SETTINGS, outlive_group=True)
OF_CONSUMERS: Final = OwnSettings(
    CONSUMER_FIELDS, CLIENT_SETTINGS, members_fence=False, outlive_group=True
)


def effective(
    node: GroupSettings, configs: Mapping[str, str], own: OwnSettings = OF_NODE
) -> GroupSettings:
    """Return the settings of a group: its node's, replaced by its own."""
    settings = apply_configs(node, configs, own)
    if flaw_in_session(settings, own):
        settings = replace(
            settings,
            session_timeout_ms=node.session_timeout_ms,
            heartbeat_interval_ms=node.heartbeat_interval_ms,
        )
    if flaw_in_bounds(settings):
        settings = replace(
            settings,
            least_classic_session_ms=node.least_classic_session_ms,
            longest_classic_session_ms=node.longest_classic_session_ms,
        )
    return settings


def apply_configs(
    node: GroupSettings, configs: Mapping[str, str], own: OwnSettings
) -> GroupSettings:
    """Return a node's settings, replaced by those of these that are of use and allowed."""
    values = {
        field: value
        for field, setting in own.fields.items()
        if setting.name in configs and (value := parse(setting, configs[setting.name])) is not None
    }
    return replace(node, **values)  # type: ignore[arg-type]


def parse(setting: Setting, text: str) -> int | MigrationPolicy | None:
    """Return the value that a text spells, None if it is not allowed."""
    try:
        value = setting.parse(text)
    except ValueError:
        return None
    return value if isinstance(value, int | MigrationPolicy) else None


def flaw_in_session(settings: GroupSettings, own: OwnSettings) -> str:
    """Return why no member could keep its session; "" if each can."""
    session_ms, interval_ms = settings.session_timeout_ms, settings.heartbeat_interval_ms
    if own.members_fence:
        return flaw_in_times(session_ms, interval_ms, settings.fence_margin_ms)
    if session_ms > interval_ms:
        return ""
    return (
        f"consumer.session.timeout.ms = {session_ms} must be greater than"
        f" consumer.heartbeat.interval.ms = {interval_ms}"
    )


def flaw_in_bounds(settings: GroupSettings) -> str:
    """Return why no classic member could ask for any session; "" if each can."""
    return flaw_in_both(settings.least_classic_session_ms, settings.longest_classic_session_ms)


def describe_settings(
    own: OwnSettings, node: GroupSettings, configs: Mapping[str, str]
) -> tuple[GroupSetting, ...]:
    """Return each setting that a group may have, in the order of names; `configs` are its own."""
    return tuple(
        GroupSetting(name, configs.get(name, str(getattr(node, FIELD_OF[name]))), name in configs)
        for name in sorted(own.names)
    )
