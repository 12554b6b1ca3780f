"""A group's own settings: validated as a whole, and good at once (record 8)."""

from dataclasses import fields, replace

import pytest

from fairlead.actors.group.state.own_settings import FIELDS, SETTINGS, effective
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.validate import LARGEST_NUMBER
from fairlead.actors.messages.commands import CommandReply, ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.records import GroupConfiguration, Tombstone
from fairlead_tests.decider import JOIN, Decider

NODE = GroupSettings(session_timeout_ms=10_000, heartbeat_interval_ms=3_000)


@pytest.fixture
def decider() -> Decider:
    decider = Decider(NODE)
    decider.configure("A B")
    decider.join("W1")
    decider.settle()
    return decider


def configure(**configs: str | None) -> ConfigureGroup:
    return ConfigureGroup("connect", {key.replace("_", "."): configs[key] for key in configs})


def test_every_setting_is_a_field_of_the_nodes_and_allows_its_default() -> None:
    known = {each.name for each in fields(GroupSettings)}
    for field, setting in FIELDS.items():
        assert (field in known, SETTINGS[setting.name]) == (True, setting)
        default = getattr(NODE, field)
        told = min(default, LARGEST_NUMBER) if isinstance(default, int) else default
        assert setting.parse(str(told)) == told


def test_a_setting_is_recorded_and_good_at_once_and_bumps_nothing(
    decider: Decider,
) -> None:
    epoch = decider.group.group_epoch
    decision = decider.carry_out(configure(session_timeout_ms="20000", group_max_size="1"))
    assert decision.records == (
        GroupConfiguration({"group.max.size": "1", "session.timeout.ms": "20000"}),
    )
    assert decision.reply == CommandReply(Error.NONE, log_offset=decider.group.end)
    assert decider.soft.settings == replace(NODE, session_timeout_ms=20_000, max_size=1)
    assert decider.group.group_epoch == epoch
    assert decider.join("W2").error is Error.GROUP_MAX_SIZE_REACHED
    assert decider.beat("W1").session_timeout_ms == 20_000


def test_after_a_restart_a_setting_is_still_good(decider: Decider) -> None:
    decider.carry_out(configure(heartbeat_interval_ms="500"))
    decider.restart()
    assert decider.soft.settings == replace(NODE, heartbeat_interval_ms=500)


def test_a_change_keeps_what_it_does_not_name_and_none_takes_one_back(
    decider: Decider,
) -> None:
    decider.carry_out(configure(group_max_size="5", assignment_interval_ms="100"))
    assert decider.carry_out(configure(group_max_size=None)).records == (
        GroupConfiguration({"assignment.interval.ms": "100"}),
    )
    assert decider.carry_out(configure(assignment_interval_ms=None)).records == (
        Tombstone(GroupConfiguration, ()),
    )
    assert (decider.group.configs, decider.soft.settings) == ({}, NODE)


def test_a_change_that_changes_nothing_writes_nothing(decider: Decider) -> None:
    decider.carry_out(configure(group_max_size="5"))
    for command in (configure(group_max_size="5"), configure(session_timeout_ms=None)):
        assert decider.carry_out(command).records == ()


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"sesion.timeout.ms": "1"},
            "unknown setting 'sesion.timeout.ms': did you mean session.timeout.ms?",
        ),
        (
            {"zzz": "1"},
            "unknown setting 'zzz': a group has assignment.interval.ms,"
            " connect.initial.rebalance.delay.ms, group.initial.rebalance.delay.ms,"
            " group.max.session.timeout.ms, group.max.size, group.migration.policy,"
            " group.min.session.timeout.ms, heartbeat.interval.ms, member.request.rate,"
            " scheduled.rebalance.leave.delay.ms, scheduled.rebalance.max.delay.ms,"
            " session.timeout.ms",
        ),
        (
            {"session.timeout.ms": "ten"},
            "session.timeout.ms = 'ten': allowed is a whole number of milliseconds, from 1 to"
            " 1800000",
        ),
        (
            {"group.max.size": "0", "member.request.rate": "-1"},
            "group.max.size = '0': allowed is a whole number of members, from 1 to 2147483647;"
            " member.request.rate = '-1': allowed is a whole number of requests a second, from 0"
            " to 100000",
        ),
        (
            {"session.timeout.ms": "9999"},
            "session.timeout.ms = 9999 is too short: a worker has to be able to miss one heartbeat"
            " and still to stop in time, so it must be at least fence.margin.ms + 2 *"
            " (heartbeat.interval.ms + 1500) = 10000 with heartbeat.interval.ms = 3000 and"
            " fence.margin.ms = 1000",
        ),
        (
            {"group.min.session.timeout.ms": "1800001"},
            "group.min.session.timeout.ms = 1800001 is above group.max.session.timeout.ms ="
            " 1800000: no classic member could ask for any session",
        ),
        (
            {"session.timeout.ms": "60001"},
            "session.timeout.ms = 60001 is longer than the rebalance timeout of 60000 ms of member"
            " W1: raise rebalance.timeout.ms at its node first, or choose a shorter session",
        ),
    ],
)
def test_a_change_is_refused_as_a_whole_and_says_why(
    decider: Decider, configs: dict[str, str], message: str
) -> None:
    command = ConfigureGroup("connect", {"group.max.size": "7", **configs})
    end = decider.group.end
    told = f"{message}; nothing was changed"
    assert decider.command(command) == CommandReply(Error.INVALID_CONFIG, told)
    assert (decider.group.end, decider.soft.settings) == (end, NODE)


@pytest.mark.parametrize("text", ["", " 1", "1_0", "+1", "٣", "9" * 5_000, "\ud800", "1.0"])
def test_a_value_is_spelled_in_plain_digits(decider: Decider, text: str) -> None:
    reply = decider.command(configure(group_max_size=text))
    assert (reply.error, len(reply.message) < 500) == (Error.INVALID_CONFIG, True)


def test_settings_that_agree_only_together_are_taken_together(decider: Decider) -> None:
    assert decider.command(configure(session_timeout_ms="5000")).error is Error.INVALID_CONFIG
    both = configure(session_timeout_ms="5000", heartbeat_interval_ms="500")
    assert decider.command(both).error is Error.NONE
    alone = configure(heartbeat_interval_ms=None)
    assert decider.command(alone).error is Error.INVALID_CONFIG, "the session needs it"


def test_what_a_later_version_wrote_is_left_alone_and_changes_nothing() -> None:
    configs = {"colour": "red", "group.max.size": "many", "assignment.interval.ms": "5"}
    assert effective(NODE, configs) == replace(NODE, assignment_interval_ms=5)


def test_bounds_that_the_node_has_moved_past_each_other_are_those_of_the_node() -> None:
    node = replace(NODE, longest_classic_session_ms=10_000)
    assert effective(node, {"group.min.session.timeout.ms": "10000"}) != node
    assert effective(node, {"group.min.session.timeout.ms": "10001"}) == node


def test_an_unknown_setting_of_the_log_can_be_taken_back(decider: Decider) -> None:
    decider.write(GroupConfiguration({"colour": "red"}))
    decider.carry_out(configure(group_max_size="5"))
    assert decider.group.configs == {"colour": "red", "group.max.size": "5"}
    decider.carry_out(configure(colour=None, group_max_size=None))
    assert decider.group.configs == {}


def test_a_session_that_the_nodes_settings_allow_no_longer_is_passed_over() -> None:
    slower = replace(NODE, session_timeout_ms=30_000, heartbeat_interval_ms=9_000)
    assert effective(slower, {"session.timeout.ms": "10000", "group.max.size": "3"}) == replace(
        slower, max_size=3
    )


def test_a_deadline_that_is_recorded_does_not_move(decider: Decider) -> None:
    decider.join("W2", replace(JOIN, url="http://w2"))
    decider.settle()
    decider.carry_out(ExpireSession("W2"))
    decider.carry_out(configure(scheduled_rebalance_max_delay_ms="0"))
    (loss,) = decider.group.losses.values()
    assert loss.deadline_ms == NODE.max_delay_ms
