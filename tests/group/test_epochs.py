"""What bumps the group epoch, and with which cause (PROTOCOL §2; `epoch_bumps` of the data)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import Command, ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, PutTaskConfigs
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.model import Cause, ClientAssignor, GroupState, MemberState, Token, Why
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
    TaskConfigs,
)
from fairlead_tests.decider import JOIN, Decider, resources

BEAT = Heartbeat("connect", "W1", 2, "1")


@pytest.fixture
def decider() -> Decider:
    """A group of W1 and W2, at rest at epoch 2."""
    decider = Decider()
    decider.configure("A A-0 B B-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.join("W2")
    decider.settle()
    assert (decider.group.group_epoch, decider.group.state) == (2, GroupState.STABLE)
    return decider


def assignor(**changes: object) -> tuple[ClientAssignor, ...]:
    return (replace(ClientAssignor("balanced"), **changes),)  # type: ignore[arg-type]


BUMPS: dict[str, tuple[Command, Cause]] = {
    "join": (
        replace(JOIN, member_id="W3", url="http://w3"),
        Cause(Why.MEMBER_JOINED, "http://w3"),
    ),
    "leave": (replace(BEAT, member_epoch=-1), Cause(Why.MEMBER_LEFT, "http://w1")),
    "session": (ExpireSession("W1"), Cause(Why.SESSION_EXPIRED, "http://w1")),
    "assignor-range": (
        replace(BEAT, assignors=assignor(maximum_version=3)),
        Cause(Why.ASSIGNORS_CHANGED, "http://w1"),
    ),
    "another-assignor": (
        replace(BEAT, assignors=(*assignor(), ClientAssignor("eager"))),
        Cause(Why.ASSIGNORS_CHANGED, "http://w1"),
    ),
    "metadata": (
        replace(BEAT, assignors=assignor(metadata=b"{}")),
        Cause(Why.METADATA_CHANGED, "http://w1"),
    ),
    "reason": (replace(BEAT, assignors=assignor(reason=3)), Cause(Why.REASON_GIVEN, "http://w1")),
    "new-connector": (
        PutConnector("connect", "C", {"x": "1"}, principal="someone"),
        Cause(Why.CONNECTOR_ADDED, "C"),
    ),
    "deleted-connector": (
        DeleteConnector("connect", "B", principal="someone"),
        Cause(Why.CONNECTOR_DELETED, "B"),
    ),
    "another-number-of-tasks": (
        PutTaskConfigs("connect", "W1", "A", Token(1, 1), ({"task": "0"}, {"task": "1"})),
        Cause(Why.TASKS_CHANGED, "A"),
    ),
}


@pytest.mark.parametrize(("command", "cause"), BUMPS.values(), ids=BUMPS)
def test_a_change_of_who_or_what_bumps_once(
    decider: Decider, command: Command, cause: Cause
) -> None:
    records = decider.carry_out(command).records
    principal = getattr(command, "principal", None)
    bumps = [record for record in records if isinstance(record, GroupMetadata)]
    assert bumps == [GroupMetadata(3, cause, 0, principal)]
    assert decider.group.state is GroupState.ASSIGNING


RECORD_ONLY: dict[str, Command] = {
    "rebalance-timeout": replace(BEAT, rebalance_timeout_ms=7_000),
    "session-timeout": replace(BEAT, session_timeout_ms=20_000),
    "url": replace(BEAT, url="http://elsewhere"),
    "rack": replace(BEAT, rack="north"),
    "client-id": replace(BEAT, client_id="c"),
    "client-host": replace(BEAT, client_host="h"),
}


@pytest.mark.parametrize("command", RECORD_ONLY.values(), ids=RECORD_ONLY)
def test_what_a_member_says_of_itself_only_changes_its_record(
    decider: Decider, command: Command
) -> None:
    decision = decider.carry_out(command)
    assert [type(record) for record in decision.records] == [MemberMetadata]
    assert decider.group.state is GroupState.STABLE


NO_EFFECT: dict[str, Command] = {
    "plain": BEAT,
    "owned": replace(BEAT, owned=tuple(resources("A A-0"))),
    "full": replace(JOIN, member_id="W1", member_epoch=2, url="http://w1"),
    "join-again": replace(JOIN, member_id="W1", url="http://w1"),
    "fenced": replace(BEAT, member_epoch=9),
    "reason-0": replace(BEAT, assignors=assignor(reason=0)),
}


@pytest.mark.parametrize("command", NO_EFFECT.values(), ids=NO_EFFECT)
def test_what_changes_nothing_writes_nothing(decider: Decider, command: Command) -> None:
    assert decider.carry_out(command).records == ()


def test_what_a_request_leaves_out_stays_as_it_was(decider: Decider) -> None:
    said = replace(
        BEAT,
        rack="north",
        url="http://x",
        client_id="c",
        client_host="h",
        rebalance_timeout_ms=7_000,
        session_timeout_ms=20_000,
    )
    decider.carry_out(said)
    metadata = decider.member("W1").metadata
    assert decider.carry_out(BEAT).records == ()
    decider.carry_out(replace(BEAT, rack="south"))
    assert decider.member("W1").metadata == replace(metadata, rack="south")


def test_one_command_bumps_once_however_much_it_changes(decider: Decider) -> None:
    changed = (*assignor(metadata=b"{}", reason=3, maximum_version=2), ClientAssignor("eager"))
    decision = decider.carry_out(replace(BEAT, assignors=changed, url="http://x"))
    assert [type(record) for record in decision.records] == [MemberMetadata, GroupMetadata]


def test_another_reason_bumps_and_the_way_back_to_none_does_not(decider: Decider) -> None:
    epochs = list[int]()
    for reason in (3, 3, 1, 0, 0):
        decider.carry_out(replace(BEAT, assignors=assignor(reason=reason)))
        epochs.append(decider.group.group_epoch)
    assert epochs == [3, 3, 4, 4, 4]


def test_the_config_of_a_group_without_members_bumps_nothing() -> None:
    decider = Decider()
    created = decider.carry_out(PutConnector("connect", "A", {"x": "1"}))
    assert [type(each) for each in created.records] == [ConnectorConfig, ConnectorsTasksMetadata]
    deleted = decider.carry_out(DeleteConnector("connect", "A"))
    assert [type(each) for each in deleted.records] == [ConnectorConfig, ConnectorsTasksMetadata]
    assert decider.group.group_epoch == 0


def test_a_changed_task_config_alone_moves_nothing(decider: Decider) -> None:
    split = PutTaskConfigs("connect", "W1", "A", Token(1, 1), ({"task": "changed"},))
    records = decider.carry_out(split).records
    assert [type(record) for record in records] == [TaskConfigs]
    assert decider.carry_out(split).records == (), "the same split again is no news"


def state_of(group_epoch: int, assignment_epoch: int, *members: tuple[int, MemberState]) -> str:
    decider = Decider()
    records: list[MemberMetadata | CurrentAssignment] = []
    for number, (epoch, state) in enumerate(members):
        records.append(MemberMetadata(f"W{number}"))
        records.append(CurrentAssignment(f"W{number}", epoch, epoch, state, {}, {}))
    decider.write(
        *records,
        GroupMetadata(group_epoch, Cause(Why.OPERATOR), 0),
        TargetAssignment(assignment_epoch, {}),
    )
    return decider.group.state.name


def test_the_group_state_follows_from_epochs_and_members() -> None:
    stable, waiting = MemberState.STABLE, MemberState.UNRELEASED
    assert state_of(5, 5) == "EMPTY"
    assert state_of(5, 4, (4, stable)) == "ASSIGNING"
    assert state_of(5, 5, (5, stable), (4, stable)) == "RECONCILING"
    assert state_of(5, 5, (5, stable), (5, waiting)) == "RECONCILING"
    assert state_of(5, 5, (5, stable), (5, stable)) == "STABLE"


def test_a_fresh_group_is_empty_at_epoch_0() -> None:
    group = Decider().group
    assert (group.group_epoch, group.assignment_epoch, group.state.name) == (0, 0, "EMPTY")


def test_the_answer_to_a_refusal_keeps_the_epoch_of_the_request(decider: Decider) -> None:
    reply = decider.heartbeat(replace(BEAT, member_epoch=9, sequence=4))
    assert (reply.error, reply.member_epoch, reply.incarnation, reply.sequence) == (
        Error.FENCED_MEMBER_EPOCH,
        9,
        "1",
        4,
    )
