"""Prepare, Install, and what becomes of an attempt that fails (PROTOCOL §5, §6)."""

from dataclasses import replace

import pytest

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.commands import ExpireSession, RetryAssignor, TimeOutAssignor
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import DeleteConnector
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead.events.records import GroupMetadata, Record, TargetAssignment
from fairlead_tests.decider import COMPUTE, JOIN, Decider, resource, resources

ALL = resources("A A-0 B B-0")


@pytest.fixture
def decider() -> Decider:
    """A group of W1, which was asked to compute, and W2."""
    decider = Decider()
    decider.configure("A A-0 B B-0")
    assert decider.join("W1").error is COMPUTE
    assert decider.join("W2").error is Error.NONE
    return decider


def prepare(decider: Decider, **changes: object) -> PrepareReply:
    command = replace(Prepare("connect", "W1", 0), **changes)  # type: ignore[arg-type]
    reply = decider.carry_out(command).reply
    assert isinstance(reply, PrepareReply)
    return reply


def time_out(decider: Decider) -> tuple[Record, ...]:
    """Let the computation in flight take too long; return what is written."""
    assert decider.soft.computation is not None
    return decider.carry_out(TimeOutAssignor(decider.soft.computation.number)).records


def test_compute_assignment_is_repeated_until_a_target_is_installed(
    decider: Decider,
) -> None:
    asked = [decider.beat("W1", "").error for _ in range(3)]
    decider.compute()
    assert [*asked, decider.beat("W1", "").error] == [COMPUTE, COMPUTE, COMPUTE, Error.NONE]


def test_only_the_first_call_to_compute_is_news(decider: Decider) -> None:
    beat = Heartbeat("connect", "W1", 0, "1", owned=())
    said = [decider.carry_out(replace(beat, sequence=n)).news for n in range(2)]
    decider.join("W3")
    said += [decider.carry_out(replace(beat, sequence=n)).news for n in range(2)]
    assert said == [True, False, True, False]


HUGE = 10**5_000
"""A number of which Python would not even write the digits."""

REFUSALS = {
    "no-group-id": ({"group_id": ""}, Error.INVALID_REQUEST),
    "no-member-id": ({"member_id": ""}, Error.INVALID_REQUEST),
    "below-0": ({"member_epoch": -1}, Error.INVALID_REQUEST),
    "stranger": ({"member_id": "W9"}, Error.UNKNOWN_MEMBER_ID),
    "wrong-epoch": ({"member_epoch": 5}, Error.FENCED_MEMBER_EPOCH),
    "not-chosen": ({"member_id": "W2"}, Error.UNKNOWN_MEMBER_ID),
}


@pytest.mark.parametrize(("changes", "error"), REFUSALS.values(), ids=REFUSALS)
def test_prepare_is_for_the_chosen_member_alone(
    decider: Decider, changes: dict[str, object], error: Error
) -> None:
    refused = prepare(decider, **changes)
    assert (refused.error, refused.snapshot) == (error, None)


def test_a_group_that_is_not_there_can_not_be_prepared() -> None:
    assert prepare(Decider()).error is Error.GROUP_ID_NOT_FOUND


def test_install_needs_the_snapshot_that_was_handed_out(decider: Decider) -> None:
    command = Install("connect", "W1", 0, 2, Assignment({"W1": ALL}))
    reply = decider.carry_out(command).reply
    assert isinstance(reply, InstallReply)
    assert reply.error is Error.UNKNOWN_MEMBER_ID
    snapshot = decider.prepare("W1")
    decider.restart()
    assert decider.install("W1", snapshot).error is Error.UNKNOWN_MEMBER_ID
    assert decider.beat("W1", "").error is COMPUTE, "it is asked again"


FLAWS = {
    "stranger": (Assignment({"W9": ALL}), "W9 was no member in the snapshot"),
    "twice": (Assignment({"W1": ALL, "W2": resources("A-0")}), "A-0 is placed twice"),
    "missing": (
        Assignment({"W1": resources("A A-0 B")}),
        "B-0 is neither assigned nor parked nor unplaceable",
    ),
    "foreign": (Assignment({"W1": ALL | resources("C")}), "C is not configured"),
    "parked-but-not-lost": (
        Assignment({"W1": resources("A A-0 B")}, parked={resource("B-0"): 9}),
        "B-0 is parked, but was not lost",
    ),
    "unplaceable-without-reason": (
        Assignment({"W1": resources("A A-0 B")}, unplaceable={resource("B-0"): ""}),
        "B-0 is unplaceable without a reason",
    ),
    "half-a-character": (
        Assignment({"W1": resources("A A-0 B")}, unplaceable={resource("B-0"): "\ud800"}),
        "the reason why B-0 is unplaceable holds a lone surrogate, which is no Unicode",
    ),
    "endless-version": (
        Assignment({"W1": ALL}, version=HUGE),
        "the assignor's version is beyond 64 bit",
    ),
    "endless-time": (
        Assignment({"W1": ALL}, again_at_ms=HUGE),
        "the time of the rest of the moves is beyond 64 bit",
    ),
    "endless-deadline": (
        Assignment({"W1": resources("A A-0 B")}, parked={resource("B-0"): -HUGE}),
        "the deadline of B-0 is beyond 64 bit",
    ),
    "parked-and-placed": (
        Assignment({"W1": ALL}, parked={resource("B-0"): 9}),
        "B-0 is placed twice",
    ),
}


@pytest.mark.parametrize(("assignment", "message"), FLAWS.values(), ids=FLAWS)
def test_a_flawed_assignment_is_refused_and_recorded_as_failed(
    decider: Decider, assignment: Assignment, message: str
) -> None:
    snapshot = decider.prepare("W1")
    reply = decider.install("W1", snapshot, assignment)
    kept = "the target stays as it was: correct the assignor before the next attempt"
    assert reply == InstallReply(Error.INVALID_ASSIGNMENT, f"{message}; {kept}")
    target = decider.group.target
    assert (target.assignment_epoch, target.error, target.members) == (2, message, {})


def test_a_target_may_be_of_an_older_epoch_if_it_is_the_snapshots(
    decider: Decider,
) -> None:
    snapshot = decider.prepare("W1")
    decider.join("W3")
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    decider.carry_out(DeleteConnector("connect", "B"))
    assert decider.install("W1", snapshot) == InstallReply(Error.NONE)
    group = decider.group
    assert (group.assignment_epoch, group.group_epoch) == (2, 5)
    assert group.target_of == {"W1": resources("A A-0")}
    assert decider.beat("W1", "").error is COMPUTE, "the next one is asked for"
    decider.settle()
    assert decider.group.target_of.keys() == {"W1", "W3"}


def test_who_left_and_came_back_meanwhile_has_no_share(decider: Decider) -> None:
    snapshot = decider.prepare("W1")
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    decider.join("W2")
    decider.install("W1", snapshot)
    assert decider.group.target_of.keys() == {"W1"}
    assert decider.beat("W2", "").assignment == frozenset()


def test_one_epoch_never_has_two_targets(decider: Decider) -> None:
    snapshot = decider.prepare("W1")
    assert decider.install("W1", snapshot) == InstallReply(Error.NONE)
    assert decider.install("W1", snapshot).error is Error.UNKNOWN_MEMBER_ID
    assert prepare(decider).error is Error.UNKNOWN_MEMBER_ID, "nothing is due"


def test_an_install_at_an_old_member_epoch_may_be_sent_again(decider: Decider) -> None:
    decider.compute()
    decider.beat("W1", "")
    decider.join("W3")
    decider.settle()
    decider.join("W4")
    assert decider.beat("W1").error is COMPUTE
    snapshot = decider.prepare("W1")
    old = Install("connect", "W1", 0, snapshot.group_epoch, assign(snapshot))
    reply = decider.carry_out(old).reply
    assert isinstance(reply, InstallReply)
    assert reply.error is Error.FENCED_MEMBER_EPOCH
    assert decider.install("W1", snapshot) == InstallReply(Error.NONE)


def test_the_chosen_one_is_chosen_anew_when_it_goes(decider: Decider) -> None:
    decider.carry_out(ExpireSession("W1"))
    assert decider.beat("W2", "").error is COMPUTE


def test_the_chosen_one_is_chosen_anew_when_it_no_longer_qualifies(
    decider: Decider,
) -> None:
    decider.prepare("W1")
    decider.join("W3", replace(JOIN, assignors=(ClientAssignor("balanced", 0, 9, 9),)))
    assert prepare(decider).error is Error.UNKNOWN_MEMBER_ID
    assert decider.beat("W3", "").error is COMPUTE


def test_the_widest_range_computes() -> None:
    """The seed's example: A [1-5] beats B [3-4] and C [2-4]."""
    decider = Decider()
    for member_id, low, high in (("C", 2, 4), ("B", 3, 4), ("Z", 1, 5)):
        written = (ClientAssignor("balanced", low, high, high),)
        decider.join(member_id, replace(JOIN, assignors=written))
    assert prepare(decider, member_id="C").error is Error.UNKNOWN_MEMBER_ID
    assert decider.beat("Z", "").error is COMPUTE


def test_the_chosen_one_stays_chosen(decider: Decider) -> None:
    decider.compute()
    decider.join("W0")
    assert decider.beat("W1", "").error is COMPUTE


# Failed attempts.


def test_a_failed_attempt_is_recorded_and_tried_again_after_a_backoff(
    decider: Decider,
) -> None:
    waits = list[int]()
    for attempt in range(1, 7):
        assert decider.beat("W1", "").error is COMPUTE
        snapshot = decider.prepare("W1")
        epoch = decider.current("W1").member_epoch
        command = Install("connect", "W1", epoch, snapshot.group_epoch, None, "no luck")
        (record,) = decider.carry_out(command).records
        assert isinstance(record, TargetAssignment)
        assert (record.error, record.failures) == ("no luck", attempt)
        assert decider.beat("W1", "").error is Error.NONE, "not before the back-off is over"
        waits.append(record.retry_at_ms - decider.now_ms)
        decider.now_ms = record.retry_at_ms - 1
        assert decider.carry_out(RetryAssignor()).records == ()
        decider.now_ms = record.retry_at_ms
        assert decider.carry_out(RetryAssignor()).records == (
            GroupMetadata(snapshot.group_epoch + 1, Cause(Why.ASSIGNOR_RETRY), decider.now_ms),
        )
    assert waits == [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]
    decider.settle()
    assert (decider.group.target.failures, decider.group.target.retry_at_ms) == (0, 0)


def test_a_failed_attempt_keeps_the_target_without_what_is_gone(decider: Decider) -> None:
    decider.settle()
    had = decider.group.target_of["W1"]
    decider.carry_out(ExpireSession("W2"))
    decider.carry_out(DeleteConnector("connect", next(iter(had)).connector))
    decider.beat("W1")
    snapshot = decider.prepare("W1")
    decider.install("W1", snapshot, Assignment({}))
    assert decider.group.target_of == {"W1": had & decider.group.configured}


def test_who_takes_too_long_is_replaced_and_stays_a_member(decider: Decider) -> None:
    assert time_out(decider) == ()
    assert decider.beat("W1", "").error is Error.NONE
    assert decider.beat("W2", "").error is COMPUTE
    (failed,) = time_out(decider)
    assert isinstance(failed, TargetAssignment)
    assert (failed.assignment_epoch, failed.failures) == (2, 1)
    assert failed.error == "no member computed an assignment in time"


def test_when_all_who_can_compute_took_too_long_the_attempt_has_failed() -> None:
    decider = Decider()
    decider.join("W1", replace(JOIN, assignors=(ClientAssignor("balanced", 0, 9, 0),)))
    decider.join("W2")
    records = time_out(decider)
    assert [type(record) for record in records] == [TargetAssignment]
