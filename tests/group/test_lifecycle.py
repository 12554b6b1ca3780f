"""What people want a connector to be, and its restarts (DATA_PLANE §1)."""

import pytest

from fairlead.actors.group.state.soft_state import DecisionFacts
from fairlead.actors.messages.commands import CommandReply, FinishDeletion, FinishStop
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import PutTaskConfigs, ReportStatus, StatusUpdate
from fairlead.actors.messages.orders import DeleteConnector, PutConnector, Restart, SetTargetState
from fairlead.events.group import token_of
from fairlead.events.model import Cause, Resource, RunState, TaskConfig, Token, Why
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    GroupMetadata,
    TargetState,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from fairlead.projections import views
from fairlead.projections.launches import launches
from fairlead_tests.decider import Decider, resource, resources

WORK = "A A-0 A-1"
WHO = "someone"
PAUSE, STOP, RESUME = (
    SetTargetState("connect", "A", state, WHO)
    for state in (RunState.PAUSED, RunState.STOPPED, RunState.RUNNING)
)


def one_member() -> Decider:
    """A group of W1 with connector A of two tasks, at rest."""
    decider = Decider()
    decider.configure(WORK)
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.settle()
    return decider


def report(decider: Decider, text: str, state: RunState, at_ms: int, reason: str = "") -> None:
    """Have W1 say what a resource does."""
    token = token_of(decider.group, "W1", resource(text))
    assert token is not None
    update = StatusUpdate(resource(text), token, state, at_ms, reason)
    decider.carry_out(ReportStatus("connect", "W1", (update,)))


def error_of(reply: object) -> Error:
    assert isinstance(reply, CommandReply)
    return reply.error


def test_paused_work_keeps_its_place_and_is_launched_as_paused() -> None:
    decider = one_member()
    assert decider.carry_out(PAUSE).records == (TargetState("A", RunState.PAUSED, 0, WHO),)
    assert decider.current("W1").assigned.keys() == resources(WORK)
    launched = launches(decider.group, "W1", resources(WORK))
    assert {each.target_state for each in launched.values()} == {RunState.PAUSED}
    assert decider.carry_out(PAUSE).records == ()
    assert decider.carry_out(RESUME).records == (TargetState("A", RunState.RUNNING, 0, WHO),)


def test_a_stop_takes_the_tasks_and_a_resume_brings_them_back_as_they_were_split() -> None:
    decider = one_member()
    assert decider.carry_out(STOP).records == (
        TargetState("A", RunState.STOPPED, 0, WHO),
        ConnectorsTasksMetadata(resources("A")),
        GroupMetadata(2, Cause(Why.CONNECTOR_STOPPED, "A"), 0, WHO),
    )
    assert decider.group.task_numbers("A") == range(0)
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A")
    assert decider.carry_out(RESUME).records == (
        TargetState("A", RunState.RUNNING, 0, WHO),
        ConnectorsTasksMetadata(resources(WORK)),
        GroupMetadata(3, Cause(Why.CONNECTOR_RESUMED, "A"), 0, WHO),
    )
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources(WORK)


def test_a_connector_is_stopped_once_nobody_has_a_task_and_all_is_published() -> None:
    decider = one_member()
    decider.carry_out(STOP)
    report(decider, "A", RunState.STOPPED, 1)
    assert decider.carry_out(FinishStop("A")).records == ()
    assert views.resource_status(decider.group, Resource("A")).why == views.STOPPING
    decider.settle()
    with decider.knowing(DecisionFacts(has_unpublished=lambda _: True)):
        assert decider.carry_out(FinishStop("A")).records == ()
    assert not decider.group.is_stopped("A")
    done = TargetState("A", RunState.STOPPED, 0, WHO, is_complete=True)
    assert decider.carry_out(FinishStop("A")).records == (done,)
    assert decider.group.is_stopped("A")
    assert views.resource_status(decider.group, Resource("A")).state is RunState.STOPPED


@pytest.mark.parametrize("order", [PAUSE, STOP])
def test_a_connector_that_is_not_to_run_is_not_split(order: SetTargetState) -> None:
    decider = one_member()
    decider.carry_out(order)
    token = token_of(decider.group, "W1", Resource("A"))
    assert token is not None
    split = PutTaskConfigs("connect", "W1", "A", token, ({"task": "0"},))
    assert error_of(decider.carry_out(split).reply) is Error.FENCED


def test_one_that_is_paused_after_a_stop_has_no_tasks_until_it_is_resumed() -> None:
    decider = one_member()
    for order in (STOP, PAUSE):
        decider.carry_out(order)
        decider.settle()
        assert decider.current("W1").assigned.keys() == resources("A")
    decider.carry_out(RESUME)
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources(WORK)


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.STOPPED])
def test_a_connector_can_be_created_in_another_state_than_running(state: RunState) -> None:
    decider = Decider()
    put = PutConnector("connect", "A", {"name": "A"}, principal=WHO, initial_state=state)
    assert decider.carry_out(put).records == (
        ConnectorConfig("A", {"name": "A"}, actor=WHO),
        ConnectorsTasksMetadata(resources("A")),
        TargetState("A", state, 0, WHO),
    )


def test_what_is_wanted_of_a_deleted_connector_is_buried_with_it() -> None:
    decider = one_member()
    decider.carry_out(PAUSE)
    decider.carry_out(DeleteConnector("connect", "A"))
    assert error_of(decider.carry_out(RESUME).reply) is Error.UNKNOWN_CONNECTOR
    decider.settle()
    decider.carry_out(FinishDeletion("A"))
    assert "A" not in decider.group.target_states
    decider.carry_out(PutConnector("connect", "A", {"name": "A"}))
    assert decider.group.target_state("A") is RunState.RUNNING


def test_a_restart_is_a_new_generation_under_a_new_token() -> None:
    decider = one_member()
    before = launches(decider.group, "W1", resources(WORK))
    report(decider, "A-1", RunState.RUNNING, 7)
    decider.now_ms = 5
    restart = Restart("connect", resource("A-1"), principal=WHO)
    old, new = (TaskConfig({"task": str(n)}, n + 1) for n in range(2))
    told = TaskStatus(
        *(resource("A-1"), RunState.RESTARTING, "http://w1", Token(1, 2)),
        *(7, f"restart asked for by {WHO}"),
    )
    assert decider.carry_out(restart).records == (TaskConfigs("A", 2, (old, new)), told)
    after = launches(decider.group, "W1", resources(WORK))
    assert {each for each in after if after[each] != before[each]} == {resource("A-1")}
    assert after[resource("A-1")].token == Token(1, 2)
    report(decider, "A-1", RunState.RUNNING, 8)
    assert decider.group.statuses[resource("A-1")].state is RunState.RUNNING


def test_of_what_is_restarted_only_what_failed_is_if_that_is_asked_for() -> None:
    decider = one_member()
    report(decider, "A", RunState.RUNNING, 1)
    report(decider, "A-0", RunState.RUNNING, 1)
    report(decider, "A-1", RunState.FAILED, 1)
    restarted = {
        (include, only): decider.carry_out(Restart("connect", Resource("A"), include, only)).records
        for include, only in ((False, True), (True, True))
    }
    assert restarted[False, True] == ()
    assert [type(each) for each in restarted[True, True]] == [TaskConfigs, TaskStatus]
    everything = decider.carry_out(Restart("connect", Resource("A"), include_tasks=True)).records
    assert {each.resource for each in everything if isinstance(each, TaskStatus)} == resources(WORK)


@pytest.mark.parametrize("unknown", [Resource("B"), Resource("A", 2), Resource("B", 0)])
def test_what_is_not_there_is_not_restarted(unknown: Resource) -> None:
    reply = one_member().carry_out(Restart("connect", unknown)).reply
    assert error_of(reply) is Error.UNKNOWN_CONNECTOR


def test_nothing_is_said_of_what_nobody_holds() -> None:
    decider = Decider()
    decider.configure(WORK)
    records = decider.carry_out(Restart("connect", Resource("A"), include_tasks=True)).records
    assert [type(each) for each in records] == [ConnectorConfig, TaskConfigs]
    assert not any(isinstance(each, Tombstone) for each in records)
