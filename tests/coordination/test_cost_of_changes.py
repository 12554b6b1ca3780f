"""A change of what a group runs costs what it changes, whatever else the group runs."""

from pathlib import Path

import pytest

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.events import record_parts
from fairlead.events.model import GroupState
from fairlead.projections.explain.epochs import Explanation
from fairlead_tests.coordination.settled_group import MEMBERS, SettledGroup
from fairlead_tests.projecting.readings import read_epochs

CHANGES = 5
MOST_BYTES = 10_000


@pytest.mark.parametrize(("connectors", "tasks"), [(300, 1), (300, 10), (3_000, 1)])
def test_a_connector_created_or_deleted_writes_little_however_many_there_are(
    connectors: int, tasks: int, tmp_path: Path
) -> None:
    driver = SettledGroup.with_connectors(tmp_path, connectors, tasks)
    names = [f"another.{number}" for number in range(CHANGES)]
    costs = [driver.cost(lambda: driver.create(name)) for name in names]  # noqa: B023
    assert {each.connector for each in driver.group.owner} >= set(names)
    costs += [driver.cost(lambda: driver.delete(name)) for name in names]  # noqa: B023
    assert max(costs) <= MOST_BYTES, costs
    assert driver.group.state is GroupState.STABLE
    driver.close()


def test_the_answer_to_a_change_waits_for_all_of_it_in_the_log(tmp_path: Path) -> None:
    driver = SettledGroup.with_connectors(tmp_path, 50)
    said = driver.put("another")
    assert {
        each.reply.log_offset
        for each in said
        if isinstance(each.reply, HeartbeatReply | CommandReply)
    } == {driver.control.end}
    driver.close()


def test_a_group_in_parts_starts_anew_as_it_was(tmp_path: Path) -> None:
    driver = SettledGroup.with_connectors(tmp_path, 50)
    driver.create("another")
    before = driver.group
    assert before.target.parts
    driver.open()
    assert driver.group == before
    driver.delete("another")
    assert driver.group.state is GroupState.STABLE
    driver.close()


def told(folder: Path) -> list[Explanation]:
    """Return how every epoch of some changes is explained."""
    driver = SettledGroup.with_connectors(folder, 50)
    driver.create("another")
    driver.delete("connector.7")
    driver.leave(MEMBERS[1])
    driver.settle()
    entries = driver.control.read(0).entries
    driver.close()
    return [each.explain() for each in list(read_epochs(entries))]


def test_a_log_in_parts_is_explained_as_one_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts = told(tmp_path / "parts")
    monkeypatch.setattr(record_parts, "LEAST_PER_PART", 1_000_000)
    assert in_parts == told(tmp_path / "whole")
    causes = [each.report.bump.cause.why.value for each in in_parts]
    assert causes[-3:] == ["tasks-changed", "connector-deleted", "member-left"]
