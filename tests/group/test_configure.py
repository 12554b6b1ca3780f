"""Connectors and their tasks come, change and go (DATA_PLANE §1)."""

from copy import copy
from dataclasses import replace

import pytest

from fairlead.actors.group.state.soft_state import DecisionFacts
from fairlead.actors.messages.commands import CommandReply, FinishDeletion
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import (
    ExternalStateRemoved,
    PutTaskConfigs,
    ReportStatus,
    StatusUpdate,
)
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.catalogue import commit_key
from fairlead.events.commits import CommitId, Committed
from fairlead.events.group import token_of
from fairlead.events.model import RunState, TaskConfig, Token
from fairlead.events.records import (
    ConnectorConfig,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from fairlead_tests.decider import Decider, resource, resources


@pytest.fixture
def decider() -> Decider:
    """W1 runs connector A, which has split its work into two tasks."""
    decider = Decider()
    decider.carry_out(PutConnector("connect", "A", {"x": "1"}))
    decider.join("W1")
    decider.settle()
    decider.carry_out(split({"n": "0"}, {"n": "1"}))
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 A-1")
    return decider


def split(*configs: dict[str, str], token: Token = Token(1, 1)) -> PutTaskConfigs:  # noqa: B008
    return PutTaskConfigs("connect", "W1", "A", token, configs)


def test_a_config_that_is_there_already_is_no_news(decider: Decider) -> None:
    end = decider.group.end
    again = PutConnector("connect", "A", {"x": "1"})
    assert decider.command(again) == CommandReply(Error.NONE, log_offset=end)
    refused = decider.command(PutConnector("connect", "A", {"x": "2"}, create_only=True))
    assert (refused.error, decider.group.end) == (Error.ALREADY_EXISTS, end)


def test_a_config_that_replaces_another_one_is_refused_once_that_is_not_there_any_more(
    decider: Decider,
) -> None:
    put = PutConnector("connect", "A", {"x": "2"}, replaces={"x": "1"})
    assert decider.command(put).error is Error.NONE
    assert decider.command(put).error is Error.NONE, "a copy of it"
    end = decider.group.end
    late = PutConnector("connect", "A", {"x": "3"}, replaces={"x": "1"})
    assert decider.command(late).error is Error.ALREADY_EXISTS
    gone = PutConnector("connect", "B", {"x": "3"}, replaces={"x": "1"})
    assert decider.command(gone).error is Error.UNKNOWN_CONNECTOR
    assert decider.group.end == end


def test_a_changed_config_moves_nothing_and_is_a_new_version(decider: Decider) -> None:
    records = decider.carry_out(PutConnector("connect", "A", {"x": "2"})).records
    assert records == (ConnectorConfig("A", {"x": "2"}, 2, 0),)
    assert token_of(decider.group, "W1", resource("A")) == Token(1, 2)


def test_a_new_split_renews_only_the_tasks_that_it_alters(decider: Decider) -> None:
    decider.carry_out(split({"n": "0"}, {"n": "changed"}))
    assert decider.group.task_configs["A"] == TaskConfigs(
        "A", 2, (TaskConfig({"n": "0"}, 1), TaskConfig({"n": "changed"}, 2))
    )
    tokens = [token_of(decider.group, "W1", resource(name)) for name in ("A-0", "A-1")]
    assert tokens == [Token(2, 1), Token(2, 2)]


@pytest.mark.parametrize("token", [Token(0, 1), Token(2, 1), Token(1, 2)])
def test_only_the_holder_of_the_current_token_may_split(decider: Decider, token: Token) -> None:
    assert decider.command(split({"n": "9"}, token=token)).error is Error.FENCED


@pytest.mark.parametrize("name", ["", " ", "a\0b", "x" * 250, "\ud800"], ids=repr)
def test_a_name_that_no_key_can_hold_is_refused(decider: Decider, name: str) -> None:
    put = PutConnector("connect", name, {"x": "1"})
    assert decider.command(put).error is Error.INVALID_CONFIG


def test_a_config_that_no_log_can_hold_is_refused(decider: Decider) -> None:
    for config in ({"x": "\ud800"}, {"\ud800": "x"}):
        put = PutConnector("connect", "B", config)
        assert decider.command(put).error is Error.INVALID_CONFIG


# Deletion.


def test_a_deleted_connector_is_buried_when_nobody_holds_any_of_it(
    decider: Decider,
) -> None:
    decider.carry_out(DeleteConnector("connect", "A"))
    assert decider.group.configured == frozenset()
    assert decider.carry_out(FinishDeletion("A")).records == ()
    decider.settle()
    assert decider.carry_out(FinishDeletion("A")).records == (
        Tombstone(TaskConfigs, ("A",)),
        Tombstone(ConnectorConfig, ("A",)),
    )
    assert decider.carry_out(FinishDeletion("A")).records == ()


def test_a_deleted_connector_is_buried_once_its_source_forgot_or_is_to_be_left_alone(
    decider: Decider,
) -> None:
    at_ms = decider.group.connectors["A"].time_ms
    decider.carry_out(DeleteConnector("connect", "A", forgets=True))
    decider.settle()
    assert decider.carry_out(FinishDeletion("A")).records == ()
    told = ExternalStateRemoved("connect", "W1", "A", at_ms)
    assert decider.command(replace(told, member_id="W9")).error is Error.UNKNOWN_MEMBER_ID
    for late in (replace(told, config_ms=at_ms - 1), replace(told, connector="B")):
        assert decider.carry_out(late).records == ()
    before = copy(decider.group.connectors["A"])
    for enough in (told, DeleteConnector("connect", "A")):
        decider.write(before)
        decider.carry_out(enough)
        assert not decider.group.connectors["A"].to_forget
        assert decider.carry_out(enough).records == ()
    assert decider.carry_out(FinishDeletion("A")).records != ()


def test_what_can_never_be_published_is_given_up_by_a_deletion_that_says_so(
    decider: Decider,
) -> None:
    left = tuple(CommitId("A", task, Token(1, 1), 0) for task in range(2))
    graves = tuple(Tombstone(Committed, commit_key(each)) for each in left)
    given_up = DeleteConnector("connect", "A", publishes=False)
    before = copy(decider.group.connectors["A"])
    with decider.knowing(DecisionFacts(unpublished=lambda _: left)):
        assert decider.carry_out(DeleteConnector("connect", "A")).offset_records == ()
        later = decider.carry_out(given_up)
        ending = replace(before, deleting=True, given_up=2)
        assert (later.records, later.offset_records) == ((ending,), graves)
        decider.write(before)
        at_once = decider.carry_out(given_up)
        assert (at_once.records[0], at_once.offset_records) == (ending, graves)
    assert decider.command(given_up).error is Error.UNKNOWN_CONNECTOR, "nothing is left"


def test_a_connector_that_is_being_deleted_can_not_be_put_or_deleted(
    decider: Decider,
) -> None:
    decider.carry_out(DeleteConnector("connect", "A"))
    put = PutConnector("connect", "A", {"x": "2"})
    assert decider.command(put).error is Error.ALREADY_EXISTS
    delete = DeleteConnector("connect", "A")
    assert decider.command(delete).error is Error.UNKNOWN_CONNECTOR


def test_a_late_split_does_not_bring_deleted_tasks_back(decider: Decider) -> None:
    decider.carry_out(DeleteConnector("connect", "A"))
    refused = decider.command(split({"n": "0"}, {"n": "1"}, {"n": "2"}))
    assert (refused.error, decider.group.configured) == (Error.FENCED, frozenset())


def test_a_connector_is_not_buried_while_an_old_target_still_grants_it(
    decider: Decider,
) -> None:
    decider.join("W2")
    decider.write(TargetAssignment(3, {"W2": decider.group.configured}))
    decider.beat("W1")
    decider.carry_out(DeleteConnector("connect", "A"))
    decider.beat("W1", "")
    assert decider.carry_out(FinishDeletion("A")).records == ()
    assert decider.beat("W2", "").assignment == resources("A A-0 A-1")
    decider.settle()
    assert decider.carry_out(FinishDeletion("A")).records != ()


# Statuses.


def report(decider: Decider, token: Token, state: RunState, at_ms: int = 7) -> int:
    update = StatusUpdate(resource("A-0"), token, state, at_ms)
    return len(decider.carry_out(ReportStatus("connect", "W1", (update,))).records)


def test_an_older_token_never_overwrites_a_newer_status(decider: Decider) -> None:
    assert report(decider, Token(2, 1), RunState.RUNNING) == 1
    assert report(decider, Token(2, 1), RunState.RUNNING) == 0, "nothing new"
    assert report(decider, Token(1, 9), RunState.FAILED) == 0
    assert decider.group.statuses == {
        resource("A-0"): TaskStatus(resource("A-0"), RunState.RUNNING, "http://w1", Token(2, 1), 7)
    }


def test_words_that_were_overtaken_on_their_way_do_not_count(decider: Decider) -> None:
    token = Token(2, 1)
    assert report(decider, token, RunState.RUNNING, 9) == 1
    assert report(decider, token, RunState.UNASSIGNED, 8) == 0
    assert decider.group.statuses[resource("A-0")].state is RunState.RUNNING


def test_a_stranger_can_not_report(decider: Decider) -> None:
    assert decider.command(ReportStatus("connect", "W9", ())).error is Error.UNKNOWN_MEMBER_ID
