"""Which requests are new, and which epochs are good (PROTOCOL §3)."""

from dataclasses import replace

from fairlead.actors.group.members.request_filter import RequestFilter
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import Cause, MemberState, Why
from fairlead.events.records import GroupMetadata, TargetAssignment
from fairlead_tests.decider import JOIN, Decider, resources

BEAT = Heartbeat("connect", "W1", 1, "1", sequence=5)


def test_what_is_not_newer_is_dropped_leaves_included() -> None:
    requests = RequestFilter()
    said = [
        requests.admits(request)
        for request in (
            BEAT,
            BEAT,
            replace(BEAT, sequence=4),
            replace(BEAT, sequence=5, member_epoch=-1),
            replace(BEAT, sequence=6),
            replace(BEAT, sequence=1, incarnation="2"),
        )
    ]
    assert said == [True, False, False, False, True, True]


def test_a_late_copy_does_not_bring_a_seat_back() -> None:
    requests = RequestFilter()
    join = replace(JOIN, member_id="W1", sequence=1)
    leave = replace(BEAT, sequence=2, member_epoch=-1)
    assert (requests.admits(join), requests.admits(leave)) == (True, True)
    requests.forget("W1")
    assert not requests.admits(join)


def test_who_ever_owned_something_has_acknowledged_and_who_is_unknown_counts_as_if() -> None:
    requests = RequestFilter()
    requests.admits(replace(JOIN, member_id="W1", sequence=1))
    before = requests.has_acknowledged("W1")
    requests.admits(replace(BEAT, sequence=2, owned=tuple(resources("A"))))
    assert (before, requests.has_acknowledged("W1"), requests.has_acknowledged("W9")) == (
        False,
        True,
        True,
    )


def test_who_joined_before_a_restart_has_acknowledged_though_it_says_nothing_of_it() -> None:
    requests = RequestFilter()
    requests.admits(BEAT)
    assert requests.has_acknowledged("W1")


def running() -> Decider:
    """W1 runs A and A-0 at epoch 1."""
    decider = Decider()
    decider.configure("A A-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    return decider


def test_a_repeated_join_keeps_epoch_and_work() -> None:
    decider = running()
    end = decider.group.end
    reply = decider.join("W1")
    assert (reply.error, reply.member_epoch, reply.assignment) == (
        Error.NONE,
        1,
        resources("A A-0"),
    )
    assert decider.group.end == end


def test_a_repeated_join_acknowledges_a_revocation() -> None:
    decider = running()
    decider.write(
        GroupMetadata(2, Cause(Why.OPERATOR), 0), TargetAssignment(2, {"W1": resources("A")})
    )
    decider.beat("W1")
    assert decider.current("W1").pending.keys() == resources("A-0")
    reply = decider.join("W1")
    assert (reply.member_epoch, reply.assignment) == (2, resources("A"))
    assert decider.current("W1").state is MemberState.STABLE


def test_a_lost_answer_is_made_good_by_the_epoch_before_it() -> None:
    decider = running()
    again = replace(JOIN, member_id="W1", url="http://w1", sequence=9)
    assert decider.heartbeat(again).assignment == resources("A A-0")
    decider.write(
        GroupMetadata(2, Cause(Why.OPERATOR), 0), TargetAssignment(2, {"W1": resources("A A-0")})
    )
    assert decider.beat("W1").member_epoch == 2
    lost = replace(BEAT, owned=tuple(resources("A")))
    assert decider.heartbeat(lost).error is Error.NONE
    assert decider.heartbeat(replace(lost, owned=None)).error is Error.FENCED_MEMBER_EPOCH
    foreign = replace(lost, owned=tuple(resources("A B")))
    assert decider.heartbeat(foreign).error is Error.FENCED_MEMBER_EPOCH


def test_the_answer_is_full_if_the_request_was() -> None:
    decider = running()
    full = replace(JOIN, member_id="W1", member_epoch=1, owned=tuple(resources("A A-0")))
    partial = (
        replace(full, owned=None),
        replace(full, assignors=None),
        replace(full, rebalance_timeout_ms=-1),
    )
    said = [decider.heartbeat(request).assignment for request in (full, *partial)]
    assert said == [resources("A A-0"), None, None, None]


def test_the_answer_names_the_end_of_the_log_that_it_rests_on() -> None:
    decider = running()
    for request in (BEAT, replace(BEAT, rack="north")):
        assert decider.heartbeat(request).log_offset == decider.group.end
