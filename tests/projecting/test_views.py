from dataclasses import replace

import pytest
from msgspec import to_builtins

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import CommandReply, ExpireSession
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.members import ReportStatus, StatusUpdate
from fairlead.actors.messages.orders import DeleteConnector, SetTargetState
from fairlead.events.model import ClientAssignor, Resource, RunState, Token
from fairlead.projections.views import (
    RESUMING,
    ResourceStatus,
    connector_names,
    resource_status,
    run_states,
)
from fairlead.runtime.interfaces.replies.building.connectors import (
    MadeBy,
    connector_status,
    task_status,
)
from fairlead.runtime.interfaces.replies.building.groups import describe_group
from fairlead.runtime.interfaces.replies.building.node import describe_member
from fairlead.runtime.interfaces.replies.connectors import TaskState
from fairlead_tests.decider import JOIN, Decider, resource

A0 = {"id": "A-0", "connector": "A", "task": 0}


@pytest.fixture
def decider() -> Decider:
    made = Decider(GroupSettings(max_delay_ms=60_000))
    made.configure("A A-0")
    made.join("W1", replace(JOIN, url="here/w1"))
    made.settle()
    return made


def report(decider: Decider, what: str, state: RunState, reason: str = "") -> CommandReply:
    update = StatusUpdate(resource(what), Token(1, 1), state, reason=reason, at_ms=0)
    return decider.command(ReportStatus("connect", "W1", (update,)))


def test_what_nobody_reported_is_unassigned(decider: Decider) -> None:
    assert resource_status(decider.group, resource("A-0")) == ResourceStatus(
        RunState.UNASSIGNED, "here/w1"
    )
    assert resource_status(decider.group, resource("B")) == ResourceStatus(RunState.UNASSIGNED, "")


def test_only_a_failure_has_a_trace_and_what_waits_has_a_reason(decider: Decider) -> None:
    report(decider, "A-0", RunState.RUNNING, "waiting for files")
    assert to_builtins(task_status(decider.group, "A", 0, MadeBy("source"))) == {
        "id": 0,
        "state": "RUNNING",
        "worker_id": "here/w1",
        "version": None,
        "reason": "waiting for files",
    }
    report(decider, "A-0", RunState.FAILED, "no such column")
    assert to_builtins(task_status(decider.group, "A", 0, MadeBy("source"))) == {
        "id": 0,
        "state": "FAILED",
        "worker_id": "here/w1",
        "version": None,
        "trace": "no such column",
    }


def test_what_is_paused_tells_that_it_is_no_longer_to_be(decider: Decider) -> None:
    decider.command(SetTargetState("connect", "A", RunState.PAUSED))
    report(decider, "A-0", RunState.PAUSED)
    paused = resource_status(decider.group, resource("A-0"))
    assert (paused.state, paused.why) == (RunState.PAUSED, "")
    decider.command(SetTargetState("connect", "A", RunState.RUNNING))
    resumed = resource_status(decider.group, resource("A-0"))
    assert (resumed.state, resumed.why) == (RunState.PAUSED, RESUMING)


def test_a_lost_worker_takes_its_states_with_it(decider: Decider) -> None:
    report(decider, "A-0", RunState.RUNNING)
    decider.command(ExpireSession("W1"))
    status = connector_status(decider.group, "A", MadeBy("source"))
    assert status.tasks == [TaskState(0, "UNASSIGNED", "here/w1", None)]
    assert run_states(decider.group, "A") == {
        **dict.fromkeys(RunState, 0),
        RunState.UNASSIGNED: 1,
    }


def test_what_is_lost_is_told_with_its_deadline(decider: Decider) -> None:
    decider.configure("A A-0 A-1 A-2")
    decider.join("W2", replace(JOIN, url="here/w2"))
    decider.settle()
    moved = sorted(decider.current("W2").assigned)
    decider.now_ms = 1_000
    decider.command(ExpireSession("W2"))
    decider.settle()
    told = to_builtins(describe_group(decider.group))
    lost = [
        {"id": str(each), "connector": "A", "task": each.task if each.is_task else None}
        for each in moved
    ]
    assert told["losses"] == [
        {
            "member_id": "W2",
            "instance_id": None,
            "worker_id": "here/w2",
            "resources": lost,
            "cause": "session-expired",
            "subject": "here/w2",
            "time_ms": 1_000,
            "deadline_ms": 61_000,
        }
    ]
    assert told["parked"] == [{**each, "deadline_ms": 61_000, "fired": False} for each in lost]
    assert told["unassigned"] == lost
    assert resource_status(decider.group, moved[0]) == ResourceStatus(
        RunState.UNASSIGNED, "", "its worker is lost, and waited for until 1970-01-01T00:01:01Z"
    )


def test_what_no_member_can_take_is_told_with_the_reason() -> None:
    decider = Decider()
    decider.configure("A A-0")
    decider.join("W1")
    reason = "no worker has the tag gpu"
    members = {"W1": frozenset({Resource("A")})}
    assignment = Assignment(members, unplaceable={Resource("A", 0): reason})
    decider.install("W1", decider.prepare("W1"), assignment)
    decider.beat("W1", "")
    told = to_builtins(describe_group(decider.group))
    assert told["target"]["unplaceable"] == [{**A0, "reason": reason}]
    assert told["unassigned"] == [A0]
    assert connector_status(decider.group, "A", MadeBy("source")).tasks == [
        TaskState(0, "UNASSIGNED", "", None, reason=reason)
    ]


def test_what_a_worker_says_of_itself_is_told() -> None:
    decider = Decider()
    listed = (ClientAssignor("balanced", metadata=b'{"capacity":3,"tags":["ssd","gpu"]}'),)
    decider.join("W1", replace(JOIN, assignors=listed, rack="b"))
    told = describe_member(decider.group, decider.group.members["W1"])
    assert (told.rack, told.tags, told.capacity) == ("b", ["gpu", "ssd"], 3)


def test_a_connector_that_is_being_deleted_is_not_listed(decider: Decider) -> None:
    assert connector_names(decider.group) == ["A"]
    decider.command(DeleteConnector("connect", "A"))
    assert connector_names(decider.group) == []
