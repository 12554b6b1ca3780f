"""What a heartbeat must be, and what refuses it (PROTOCOL §3; `request_validation` of the data)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import ClientAssignor
from fairlead_tests.decider import COOPERATIVE, JOIN, Decider, resource

FIRST = replace(JOIN, member_id="W1", url="http://w1")
BEAT = Heartbeat("connect", "W1", 0, "1")


@pytest.fixture
def decider() -> Decider:
    """A group of one member, W1, that has reached epoch 1."""
    decider = Decider()
    decider.configure("A A-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    return decider


def refused(decider: Decider, request: Heartbeat) -> Error:
    """Return the error of a request that must change nothing."""
    end = decider.group.end
    reply = decider.heartbeat(request)
    assert decider.group.end == end, "a refused request changes nothing"
    return reply.error


A0 = resource("A-0")
INVALID = {
    "group-id-empty": replace(FIRST, group_id=""),
    "instance-id-empty": replace(FIRST, instance_id=""),
    "rack-empty": replace(FIRST, rack=""),
    "join-without-timeout": replace(FIRST, member_id="W2", rebalance_timeout_ms=-1),
    "join-with-timeout-0": replace(FIRST, member_id="W2", rebalance_timeout_ms=0),
    "join-without-owned": replace(FIRST, owned=None),
    "join-that-owns": replace(FIRST, owned=(A0,)),
    "join-without-assignors": replace(FIRST, member_id="W2", assignors=None),
    "join-with-no-assignor": replace(FIRST, member_id="W2", assignors=()),
    "beat-without-member-id": replace(BEAT, member_id="", member_epoch=1),
    "leave-without-member-id": replace(BEAT, member_id="", member_epoch=-1),
    "temporary-leave-without-member-id": replace(BEAT, member_id="", member_epoch=-2),
    "temporary-leave-without-instance": replace(BEAT, member_epoch=-2),
    "epoch-below-minus-2": replace(BEAT, member_epoch=-3),
    "both-kinds-of-assignor": replace(FIRST, server_assignor="uniform"),
    "assignor-without-name": replace(FIRST, assignors=(ClientAssignor(""),)),
    "minimum-below-minus-1": replace(FIRST, assignors=(ClientAssignor("a", -2, 0, 0),)),
    "maximum-below-0": replace(FIRST, assignors=(ClientAssignor("a", -1, -1, -1),)),
    "maximum-below-minimum": replace(FIRST, assignors=(ClientAssignor("a", 3, 2, 2),)),
    "version-below-range": replace(FIRST, assignors=(ClientAssignor("a", 1, 2, 0),)),
    "version-above-range": replace(FIRST, assignors=(ClientAssignor("a", 1, 2, 3),)),
    "assignor-twice": replace(FIRST, assignors=(ClientAssignor("a"), ClientAssignor("a", 0, 1))),
    "task-below-0": replace(BEAT, member_epoch=1, owned=(A0._replace(task=-2),)),
    "task-above-int32": replace(BEAT, member_epoch=1, owned=(A0._replace(task=1 << 31),)),
    "connector-without-name": replace(BEAT, member_epoch=1, owned=(A0._replace(connector=""),)),
    "owned-twice": replace(BEAT, member_epoch=1, owned=(A0, A0)),
    "epoch-above-int64": replace(BEAT, member_epoch=1 << 63),
    "timeout-0-of-a-member": replace(BEAT, member_epoch=1, rebalance_timeout_ms=0),
    "timeout-below-minus-1-of-a-member": replace(BEAT, member_epoch=1, rebalance_timeout_ms=-2),
    "timeout-0-in-a-repeated-join": replace(FIRST, rebalance_timeout_ms=0),
    "session-0": replace(BEAT, member_epoch=1, session_timeout_ms=0),
    "session-below-minus-1": replace(BEAT, member_epoch=1, session_timeout_ms=-2),
    "session-above-int32": replace(BEAT, member_epoch=1, session_timeout_ms=1 << 31),
    "both-kinds-of-assignor-as-before": replace(
        BEAT, member_epoch=1, assignors=COOPERATIVE, server_assignor="uniform"
    ),
    "stranger-id-blank": replace(BEAT, member_id="  ", member_epoch=1),
    "stranger-id-too-long": replace(BEAT, member_id="x" * 201, member_epoch=1),
    "stranger-incarnation-too-long": replace(BEAT, member_id="W2", incarnation="x" * 1_025),
    "instance-id-blank": replace(FIRST, member_id="W2", instance_id="  "),
    "instance-id-too-long": replace(FIRST, member_id="W2", instance_id="x" * 201),
}


@pytest.mark.parametrize("request_", INVALID.values(), ids=INVALID)
def test_a_flawed_request_is_invalid(decider: Decider, request_: Heartbeat) -> None:
    assert refused(decider, request_) is Error.INVALID_REQUEST


def test_a_refusal_says_what_is_wrong_in_the_words_of_the_wire(decider: Decider) -> None:
    said = {name: decider.heartbeat(request).message for name, request in INVALID.items()}
    assert all(said.values())
    assert {name: said[name] for name in ("timeout-0-of-a-member", "task-below-0")} == {
        "timeout-0-of-a-member": "RebalanceTimeoutMs is 0: it must be above 0, or -1 if it is"
        " unchanged; nothing was changed",
        "task-below-0": "owned has a task number outside 0 to 2147483647: tasks count from 0;"
        " nothing was changed",
    }


def test_what_is_invalid_is_told_before_anything_about_the_group() -> None:
    flawed = replace(BEAT, member_epoch=5, owned=(A0, A0))
    assert refused(Decider(), flawed) is Error.INVALID_REQUEST
    full = Decider(GroupSettings(max_size=1))
    full.join("W1")
    nameless = replace(FIRST, member_id="W2", assignors=None)
    assert refused(full, nameless) is Error.INVALID_REQUEST


@pytest.mark.parametrize("name", ["\0", "x" * 201, "W\ud800", "  "], ids=repr)
def test_a_member_id_that_no_key_can_hold_is_invalid(decider: Decider, name: str) -> None:
    assert refused(decider, replace(FIRST, member_id=name)) is Error.INVALID_REQUEST


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "http://\ud800"},
        {"assignors": (ClientAssignor("\ud800"),)},
        {"client_id": "\ud800"},
        {"rebalance_timeout_ms": 1 << 70},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_no_log_can_hold_is_invalid(decider: Decider, changes: dict[str, object]) -> None:
    hostile = replace(FIRST, member_id="W2", **changes)  # type: ignore[arg-type]
    assert refused(decider, hostile) is Error.INVALID_REQUEST


@pytest.mark.parametrize("epoch", [5, -1, -2])
def test_only_a_join_makes_a_group(epoch: int) -> None:
    request = replace(BEAT, member_epoch=epoch, instance_id="i")
    assert refused(Decider(), request) is Error.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [5, -1])
def test_a_stranger_can_only_join(decider: Decider, epoch: int) -> None:
    request = replace(BEAT, member_id="W2", member_epoch=epoch)
    assert refused(decider, request) is Error.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_no_newcomer_but_serves_its_members() -> None:
    decider = Decider(GroupSettings(max_size=1))
    decider.join("W1")
    newcomer = replace(FIRST, member_id="W2")
    assert refused(decider, newcomer) is Error.GROUP_MAX_SIZE_REACHED
    assert decider.beat("W1", "").error is Error.COMPUTE_ASSIGNMENT


def test_another_process_can_not_take_a_seat_that_lives(decider: Decider) -> None:
    for epoch in (0, 1, -1):
        request = replace(FIRST, member_epoch=epoch, incarnation="2")
        assert refused(decider, request) is Error.UNRELEASED_INSTANCE_ID


UNSUPPORTED = {
    "unknown-server-assignor": replace(
        FIRST, member_id="W2", assignors=None, server_assignor="unknown-name"
    ),
    "nothing-in-common": replace(FIRST, member_id="W2", assignors=(ClientAssignor("another"),)),
    "nobody-reads-all-versions": replace(
        FIRST, member_id="W2", assignors=(ClientAssignor("balanced", 5, 6, 5),)
    ),
}


@pytest.mark.parametrize("request_", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_a_newcomer_that_would_leave_nobody_able_is_refused(
    decider: Decider, request_: Heartbeat
) -> None:
    assert refused(decider, request_) is Error.UNSUPPORTED_ASSIGNOR


def test_a_newcomer_that_reads_all_versions_is_welcome(decider: Decider) -> None:
    wide = (ClientAssignor("balanced", 0, 6, 6),)
    decider.join("W2", replace(JOIN, assignors=wide))
    assert decider.beat("W2", "").error is Error.COMPUTE_ASSIGNMENT


INCOMPATIBLE = {
    "none": (),
    "another": (ClientAssignor("another"),),
    "unreadable": (ClientAssignor("balanced", 5, 6, 5),),
}


@pytest.mark.parametrize("assignors", INCOMPATIBLE.values(), ids=INCOMPATIBLE)
def test_a_members_incompatible_change_leaves_everything_as_it_was(
    decider: Decider, assignors: tuple[ClientAssignor, ...]
) -> None:
    decider.join("W2")
    decider.compute()
    epoch = decider.current("W1").member_epoch
    request = replace(BEAT, member_epoch=epoch, assignors=assignors)
    assert refused(decider, request) is Error.UNSUPPORTED_ASSIGNOR


def test_alone_a_member_may_change_its_assignor_but_not_give_it_up(
    decider: Decider,
) -> None:
    request = replace(BEAT, member_epoch=1, assignors=())
    assert refused(decider, request) is Error.UNSUPPORTED_ASSIGNOR
    changed = decider.heartbeat(replace(request, assignors=(ClientAssignor("another"),)))
    assert changed.error is Error.COMPUTE_ASSIGNMENT


def test_two_assignors_in_common_are_enough() -> None:
    decider = Decider()
    both = (ClientAssignor("a"), *COOPERATIVE)
    decider.join("W1", replace(JOIN, assignors=both))
    decider.prepare("W1")
    decider.join("W2")
    assert decider.beat("W1", "").error is Error.COMPUTE_ASSIGNMENT
    snapshot = decider.prepare("W1")
    assert (snapshot.assignor, set(snapshot.members)) == ("balanced", {"W1", "W2"})
