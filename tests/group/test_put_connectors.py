"""Several connectors are put by one command: all of them in one epoch, or none."""

from typing import Any

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import DeleteConnector, PutConnector, PutConnectors
from fairlead.events.model import Cause, Why
from fairlead.events.records import ConnectorConfig, ConnectorsTasksMetadata, GroupMetadata
from fairlead_tests.decider import Decider, resources

WHO = "rest 127.0.0.1"
ZONE = {"placement.zones": "a"}


@pytest.fixture
def decider() -> Decider:
    """W1 runs A, at epoch 1."""
    decider = Decider()
    decider.carry_out(PutConnector("connect", "A", {"x": "1"}))
    decider.join("W1")
    decider.settle()
    return decider


def put(**configs: dict[str, str]) -> PutConnectors:
    return PutConnectors("connect", configs, WHO)


def test_new_and_changed_connectors_are_one_write_and_raise_the_epoch_once(
    decider: Decider,
) -> None:
    decided = decider.carry_out(put(C={"x": "3"}, A={"x": "2"}, B={"x": "4"}))
    assert decided.records == (
        ConnectorConfig("C", {"x": "3"}, 1, 0, actor=WHO),
        ConnectorConfig("A", {"x": "2"}, 2, 0, actor=WHO),
        ConnectorConfig("B", {"x": "4"}, 1, 0, actor=WHO),
        ConnectorsTasksMetadata(resources("A B C")),
        GroupMetadata(2, Cause(Why.CONNECTOR_ADDED, "C and 1 more"), 0, WHO),
    )
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A B C")


@pytest.mark.parametrize(
    ("configs", "cause"),
    [
        ({"A": {"x": "2"}}, None),
        ({"B": {}}, Cause(Why.CONNECTOR_ADDED, "B")),
        ({"A": {**ZONE, "x": "1"}}, Cause(Why.PLACEMENT_CHANGED, "A")),
        ({"A": ZONE, "B": {}, "C": {}}, Cause(Why.CONNECTOR_ADDED, "B and 2 more")),
    ],
    ids=["changed", "new", "placed", "all"],
)
def test_only_connectors_that_are_new_or_placed_otherwise_raise_the_epoch(
    configs: dict[str, Any], cause: Cause | None, decider: Decider
) -> None:
    records = decider.carry_out(put(**configs)).records
    assert [each.cause for each in records if isinstance(each, GroupMetadata)] == (
        [cause] if cause else []
    )


def test_what_is_there_already_is_not_written_again(decider: Decider) -> None:
    decider.carry_out(put(A={"x": "2"}, B={}))
    end = decider.group.end
    assert decider.command(put(A={"x": "2"}, B={})) == CommandReply(Error.NONE, log_offset=end)
    records = decider.carry_out(put(A={"x": "2"}, B={"y": "1"})).records
    assert records == (ConnectorConfig("B", {"y": "1"}, 2, 0, actor=WHO),)


def test_a_group_without_members_has_no_epoch_of_it() -> None:
    decider = Decider()
    decider.carry_out(put(A={}, B={}))
    assert (decider.group.group_epoch, decider.group.configured) == (0, resources("A B"))


@pytest.mark.parametrize(
    ("configs", "error", "said"),
    [
        (
            {"B": {}, "A": {}},
            Error.ALREADY_EXISTS,
            ["connector 'A': connector A is being deleted: create it once it is gone"],
        ),
        (
            {"A": {}, "x" * 250: {}, "C": {"k": "\ud800"}},
            Error.INVALID_CONFIG,
            [
                "connector 'A': connector A is being deleted",
                "connector 'xxx",
                "connector 'C': the config's 'k' holds a lone surrogate",
            ],
        ),
    ],
    ids=["deleted", "several"],
)
def test_if_one_is_refused_none_is_put_and_each_refusal_is_told(
    configs: dict[str, dict[str, str]], error: Error, said: list[str], decider: Decider
) -> None:
    decider.carry_out(DeleteConnector("connect", "A"))
    end = decider.group.end
    reply = decider.command(put(**configs))
    lines = reply.message.splitlines()
    assert (reply.error, decider.group.end, len(lines)) == (error, end, len(said))
    assert all(line.startswith(each) for line, each in zip(lines, said, strict=True))
