"""The data's tables: validation and group states by machine, what is told in words by hand."""
# pyright: basic

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.messages.errors import SUCCESS
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.events.evolve import evolve
from fairlead.events.model import Cause, MemberState, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
)
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.play_translation import WRITTEN, play_translation
from fairlead_tests.conformance.played import PLAYS, play
from fairlead_tests.coordination.driver import SETTINGS, CoordinatorDriver
from fairlead_tests.decider import COOPERATIVE, Decider, resource
from fairlead_tests.translation.driver import MixedDriver


@pytest.fixture
def driver(tmp_path: Path) -> Any:
    driver = CoordinatorDriver.at(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def mixed(tmp_path: Path) -> Any:
    driver = MixedDriver.at(tmp_path / "mixed")
    yield driver
    driver.close()


def test_static_membership(
    static_membership: Case, driver: CoordinatorDriver, mixed: MixedDriver
) -> None:
    if (static_membership.section, static_membership.case_id) in WRITTEN:
        play_translation(static_membership, mixed)
    else:
        play(static_membership, driver)


def test_classic_translation(classic_translation: Case, mixed: MixedDriver) -> None:
    play_translation(classic_translation, mixed)


def test_migration(migration: Case, mixed: MixedDriver) -> None:
    play_translation(migration, mixed)


def test_epoch_bumps(epoch_bumps: Case, driver: CoordinatorDriver) -> None:
    play(epoch_bumps, driver)


def test_timers(timers: Case, driver: CoordinatorDriver) -> None:
    play(timers, driver)


def test_leave_and_delete(leave_and_delete: Case, driver: CoordinatorDriver) -> None:
    play(leave_and_delete, driver)


def test_a_case_that_nobody_plays_fails_by_its_name(driver: CoordinatorDriver) -> None:
    case = Case("timers", "brand-new", {"steps": []})
    assert ("timers", "brand-new") not in PLAYS
    with pytest.raises(AssertionError, match="nobody plays timers / brand-new"):
        play(case, driver)


GIVEN_KEYS = {
    "group_id",
    "instance_id",
    "rack_id",
    "epoch",
    "member_id",
    "rebalance_timeout_ms",
    "owned",
    "subscription",
    "assignor",
    "group",
    "member",
}
WHO = {"absent": "m9", "new": "m2", "existing": "m1"}


def request_of(given: dict[str, Any]) -> Heartbeat:
    """The request that the data means; what it leaves out is as it should be."""
    assert given.keys() <= GIVEN_KEYS, "the data has a field that nobody here knows"
    epoch = given.get("epoch", 5)
    joins = epoch == 0
    owned = given.get("owned", [] if joins else None)
    server = given.get("assignor")
    subscribes = given.get("subscription", "set" if joins and server is None else None)
    who = WHO[given.get("member", "new" if joins else "existing")]
    return Heartbeat(
        given.get("group_id", "connect"),
        given.get("member_id", who),
        epoch,
        instance_id=given.get("instance_id"),
        rack=given.get("rack_id"),
        rebalance_timeout_ms=given.get("rebalance_timeout_ms", 5_000 if joins else -1),
        assignors=COOPERATIVE if subscribes else None,
        server_assignor=server,
        owned=None if owned is None else tuple(map(resource, owned)),
    )


def set_up(driver: CoordinatorDriver, kind: str) -> None:
    """A group of m1, at rest at epoch 5, in which one more has a place if it is not full."""
    driver.settings = replace(SETTINGS, max_size=1 if kind == "full" else 2)
    ledger = OffsetLedger(driver.offsets)
    driver.coordinator = GroupShard(
        driver.group, WORKERS, driver.settings, ledger, 0, CoordinatorProcess(new_id=lambda: "made")
    )
    if kind == "absent":
        return
    records: tuple[Record, ...] = (
        MemberMetadata("m1", "", 1, 5_000, COOPERATIVE),
        GroupMetadata(5, Cause(Why.OPERATOR), 0),
        TargetAssignment(5, {"m1": frozenset()}, "balanced"),
        CurrentAssignment("m1", 5, 4, MemberState.STABLE, {}, {}),
    )
    for record in records:
        evolve(driver.group, record, driver.group.end)


def test_request_validation(request_validation: Case, driver: CoordinatorDriver) -> None:
    told = request_validation.told
    set_up(driver, told["given"].get("group", ""))
    end = driver.group.end
    request = replace(request_of(told["given"]), incarnation="")
    driver.coordinator.submit(request, "x", driver.now)
    driver.coordinator.run_timers(replace(driver.now, steady_ms=SETTINGS.heartbeat_interval_ms))
    (answer,) = driver.coordinator.ready(driver.now).answers
    assert isinstance(answer.reply, HeartbeatReply)
    expected, _, remark = told["expect"].partition(",")
    found = "OK" if answer.reply.error in SUCCESS else answer.reply.error.name
    assert found == expected
    if remark.strip() == "server generates the member id":
        assert (answer.reply.member_id, "made" in driver.group.members) == ("made", True)
    if found != "OK":
        assert (driver.group.end, bool(answer.reply.message)) == (end, True)


EPOCHS = re.compile(r"(?:group epoch|epochs) (\d+)(?:/|, assignment epoch )(\d+)")
MEMBER = re.compile(r"members? (?:(UNRELEASED|UNREVOKED|STABLE) )?at (?:epoch )?(\d+)")


def test_group_states(group_states: Case) -> None:
    given = group_states.told["given"]
    epochs, member = EPOCHS.match(given), MEMBER.search(given)
    assert epochs or given == "no members", f"the data has words that nobody here reads: {given}"
    coordinator = Decider()
    group_epoch, assignment_epoch = map(int, epochs.groups()) if epochs else (0, 0)
    records: list[Record] = []
    if epochs:
        state, epoch = (member[1], int(member[2])) if member else ("STABLE", assignment_epoch)
        waits = state == "UNRELEASED" or "UNRELEASED" in given
        name = MemberState.UNRELEASED if waits else MemberState.STABLE
        records = [
            MemberMetadata("m"),
            CurrentAssignment("m", epoch, epoch, name, {}, {}),
            GroupMetadata(group_epoch, Cause(Why.OPERATOR), 0),
            TargetAssignment(assignment_epoch, {}),
        ]
    coordinator.write(*records)
    assert coordinator.group.state.name == group_states.told["state"]
