"""The end of a group, and its next life (PROTOCOL §8, §11; `leave_and_delete` of the data)."""

from dataclasses import replace

import pytest
from coordinator import JOIN, Coordinator, resource

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import ConfigureGroup, Cordon, DeleteGroup, Place
from fairlead.actors.messages.timers import ExpireSession
from fairlead.actors.messages.work import PutConnector, ReportStatus, StatusUpdate
from fairlead.events.group import Group, token_of
from fairlead.events.model import GroupState, Resource, RunState, Token
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Operator,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)

NOW_MS = 5_000
DELETE = DeleteGroup("connect", "ann")


@pytest.fixture
def coordinator() -> Coordinator:
    """A group that has everything but members, at group epoch 5."""
    coordinator = Coordinator()
    coordinator.configure("A A-0")
    coordinator.join("W1")
    coordinator.settle()
    update = StatusUpdate(Resource("A", 0), Token(1, 1), RunState.RUNNING, 0)
    coordinator.carry_out(ReportStatus("connect", "W1", (update,)))
    coordinator.carry_out(ConfigureGroup("connect", {"group.max.size": "9"}))
    coordinator.carry_out(Cordon("connect", "w1"))
    coordinator.settle()
    coordinator.carry_out(Place("connect", resource("A"), weight=9))
    coordinator.settle()
    coordinator.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert (coordinator.group.group_epoch, coordinator.group.state) == (4, GroupState.EMPTY)
    coordinator.now_ms = NOW_MS
    return coordinator


def test_everything_gets_its_tombstone_in_the_protocols_order(coordinator: Coordinator) -> None:
    decision = coordinator.carry_out(DELETE)
    assert decision.records == (
        GroupDeletion(4, NOW_MS, "ann"),
        Tombstone(TargetAssignment, ()),
        Tombstone(TaskStatus, ("A", 0)),
        Tombstone(TaskConfigs, ("A",)),
        Tombstone(ConnectorConfig, ("A",)),
        Tombstone(ConnectorsTasksMetadata, ()),
        Tombstone(Operator, ("resource", "A", -1)),
        Tombstone(Operator, ("worker", "http://w1", -1)),
        Tombstone(GroupConfiguration, ()),
        Tombstone(GroupMetadata, ()),
    )
    assert decision.reply == CommandReply(Error.NONE, log_offset=coordinator.group.end)


def test_nothing_stays_but_how_far_the_epochs_came(coordinator: Coordinator) -> None:
    coordinator.carry_out(DELETE)
    assert coordinator.group == Group(
        "connect",
        end=coordinator.group.end,
        group_epoch=4,
        deletion=GroupDeletion(4, NOW_MS, "ann"),
    )
    assert coordinator.soft.settings.max_size == 1 << 31
    coordinator.witness.compacted(coordinator.group)


def test_a_deleted_group_is_dead_until_somebody_joins(coordinator: Coordinator) -> None:
    states: list[GroupState] = []
    for command in (
        DELETE,
        PutConnector("connect", "B", {}),
        replace(JOIN, member_id="W2"),
        Heartbeat("connect", "W2", -1, "1"),
    ):
        coordinator.carry_out(command)
        states.append(coordinator.group.state)
    dead, assigning, empty = GroupState.DEAD, GroupState.ASSIGNING, GroupState.EMPTY
    assert states == [dead, dead, assigning, empty]


def test_a_deleted_group_is_not_found_by_its_members(coordinator: Coordinator) -> None:
    coordinator.carry_out(DELETE)
    for epoch in (4, -1):
        reply = coordinator.heartbeat(Heartbeat("connect", "W1", epoch, "1"))
        assert reply.error is Error.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted() -> None:
    coordinator = Coordinator()
    coordinator.join("W1")
    assert coordinator.command(DELETE) == CommandReply(
        Error.NON_EMPTY_GROUP, "members in the group: 1; delete it once they have left"
    )


def test_there_is_no_group_to_delete_that_never_was_or_is_dead(coordinator: Coordinator) -> None:
    coordinator.carry_out(DELETE)
    for each in (coordinator, Coordinator()):
        assert each.command(DELETE) == CommandReply(
            Error.GROUP_ID_NOT_FOUND, "there is no group 'connect' to delete"
        )


def test_what_was_put_into_a_dead_group_can_be_deleted_again(coordinator: Coordinator) -> None:
    coordinator.carry_out(DELETE)
    coordinator.carry_out(PutConnector("connect", "B", {}))
    assert coordinator.command(DELETE).error is Error.NONE
    assert (coordinator.group.connectors, coordinator.group.group_epoch) == ({}, 4)


def test_no_token_of_a_deleted_group_comes_again(coordinator: Coordinator) -> None:
    """The next life begins with another shape of the same names, and the epochs go on."""
    coordinator.carry_out(DELETE)
    coordinator.configure("A A-0")
    coordinator.join("W1", replace(JOIN, incarnation="2"))
    assert coordinator.group.group_epoch == 5
    rejoin = replace(JOIN, member_id="W1", incarnation="2", url="http://w1")
    while coordinator.heartbeat(rejoin).error is Error.COMPUTE_ASSIGNMENT:
        coordinator.compute()
    assert token_of(coordinator.group, "W1", Resource("A", 0)) == Token(5, 1)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_group_may_be_deleted_time_and_again(
    coordinator: Coordinator, *, is_restarted: bool
) -> None:
    coordinator.carry_out(DELETE)
    for life in range(1, 4):
        coordinator.join("W1")
        assert coordinator.group.group_epoch == 3 + 2 * life
        coordinator.carry_out(ExpireSession("W1"))
        coordinator.carry_out(DELETE)
        coordinator.witness.compacted(coordinator.group)
        if is_restarted:
            coordinator.restart()
