"""Who computes and with which assignor: votes, ranges, stickiness (PROTOCOL §6)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fairlead.actors.group.computing.elect import Electorate, elect
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.events.model import ClientAssignor
from fairlead.events.records import MemberMetadata
from fairlead_tests.decider import JOIN, Decider

COMPUTE = Error.COMPUTE_ASSIGNMENT


def member(member_id: str, *assignors: str) -> MemberMetadata:
    """A member whose assignors are written `name` or `name:low-high@version`."""
    return MemberMetadata(member_id, assignors=tuple(map(assignor, assignors)))


def assignor(text: str) -> ClientAssignor:
    """Read `name` or `name:low-high@version`."""
    name, _, versions = text.partition(":")
    if not versions:
        return ClientAssignor(name)
    span, _, version = versions.partition("@")
    low, _, high = span.partition("-")
    return ClientAssignor(name, int(low), int(high), int(version or high))


def choice(
    crew: Sequence[MemberMetadata], last: str = "", timed_out: Sequence[str] = ()
) -> tuple[str, str] | None:
    """Elect among members, counted as the group counts them."""
    electorate = Electorate({}, {}, {}, 0)
    for each in crew:
        electorate = electorate.with_change(None, each)
    found = elect(crew, electorate, last, frozenset(timed_out))
    return (found[0], found[1].member_id) if found else None


VOTES = {
    "the-one-in-common": ([("A", "x", "y"), ("B", "y", "z")], ("y", "A")),
    "the-first-in-common-counts": ([("A", "x", "b", "a"), ("B", "b", "a"), ("C", "a", "b")], "b"),
    "most-votes": ([("A", "b", "a"), ("B", "b", "a"), ("C", "a", "b")], "b"),
    "ties-by-name": ([("A", "b", "a"), ("B", "a", "b")], "a"),
    "none-in-common": ([("A", "x"), ("B", "y")], None),
    "only-one-that-somebody-can-run-for-all": (
        [("A", "x:1-2", "y"), ("B", "x:3-4", "y")],
        ("y", "A"),
    ),
}


@pytest.mark.parametrize(("crew", "expected"), VOTES.values(), ids=VOTES)
def test_each_member_votes_for_the_first_assignor_in_common_and_most_votes_win(
    crew: list[tuple[str, ...]], expected: tuple[str, str] | str | None
) -> None:
    wanted = (expected, "A") if isinstance(expected, str) else expected
    assert choice([member(*each) for each in crew]) == wanted


RANGES = {
    "a-range-that-covers-all": (["x:3-4", "x:2-4", "x:1-5"], "C"),
    "else-one-that-covers-what-is-written": (["x:1-4@3", "x:2-6@4", "x:3-5@3"], "A"),
    "the-lowest-member-id": (["x:1-4@3", "x:1-4@4", "x:2-3@3"], "A"),
    "nobody": (["x:1-2@1", "x:4-6@6"], None),
}


@pytest.mark.parametrize(("ranges", "expected"), RANGES.values(), ids=RANGES)
def test_who_computes_must_read_what_all_others_write(
    ranges: list[str], expected: str | None
) -> None:
    crew = [member(name, each) for name, each in zip("ABC", ranges, strict=False)]
    assert choice(crew) == (("x", expected) if expected else None)


def test_the_last_chosen_is_chosen_again_while_it_qualifies() -> None:
    crew = [member("A", "x"), member("B", "x"), member("C", "x:0-1@0")]
    assert [choice(crew, last) for last in ("A", "B", "C", "")] == [("x", "C")] * 4
    assert [choice(crew[:2], last) for last in ("A", "B", "C", "")] == [
        ("x", "A"),
        ("x", "B"),
        ("x", "A"),
        ("x", "A"),
    ]


def test_who_took_too_long_comes_last_and_if_all_have_all_may_again() -> None:
    crew = [member("A", "x"), member("B", "x")]
    assert choice(crew, "A", timed_out="A") == ("x", "B")
    assert choice(crew, "B", timed_out="AB") == ("x", "B")


def test_counts_follow_a_member_that_joins_changes_and_goes() -> None:
    joined = Electorate({}, {}, {}, 0).with_change(None, member("A", "x", "y"))
    changed = joined.with_change(
        member("A", "x", "y"), MemberMetadata("A", server_assignor="uniform")
    )
    gone = changed.with_change(MemberMetadata("A", server_assignor="uniform"), None)
    ranges = {("x", 0, 0, 0): 1, ("y", 0, 0, 0): 1}
    assert joined == Electorate(ranges, {("x", "y"): 1}, {}, 1)
    assert changed == Electorate({}, {}, {"uniform": 1}, 1)
    assert gone == Electorate({}, {}, {}, 0)


# Through the coordinator.


def join(decider: Decider, member_id: str, *assignors: str) -> HeartbeatReply:
    return decider.join(member_id, replace(JOIN, assignors=tuple(map(assignor, assignors))))


def test_a_newcomer_that_fits_better_computes_in_its_join() -> None:
    decider = Decider()
    assert join(decider, "C", "x:2-4").error is COMPUTE
    assert join(decider, "B", "x:3-4").error is Error.NONE
    assert join(decider, "Z", "x:1-5").error is COMPUTE
    assert decider.beat("C", "").error is Error.NONE


def test_a_newcomers_vote_counts_in_its_join() -> None:
    decider = Decider()
    join(decider, "A", "x", "a")
    join(decider, "B", "a", "x")
    decider.carry_out(ExpireSession("A"))
    join(decider, "C", "x", "a")
    join(decider, "D", "x", "a")
    decider.carry_out(Heartbeat("connect", "B", -1, "1"))
    assert decider.soft.computation is not None
    assert (decider.soft.computation.assignor, decider.soft.computation.member_id) == (
        "x",
        "C",
    )


def test_the_vote_may_turn_until_the_snapshot_is_handed_out() -> None:
    decider = Decider()

    def chosen() -> str:
        assert decider.soft.computation is not None
        return decider.soft.computation.assignor

    join(decider, "A", "a", "x")
    turns = [chosen()]
    for member_id in ("B", "C"):
        join(decider, member_id, "x", "a")
    turns.append(chosen())
    assert decider.prepare("A").assignor == "x"
    for member_id in ("D", "E"):
        join(decider, member_id, "a", "x")
    assert [*turns, chosen()] == ["a", "x", "x"]


UNABLE = (
    "nobody could compute for all with x: the others read versions 0 to 3;"
    " join with a range that covers those, or write a version that the others read"
)
REFUSED = {
    "nothing-in-common": (
        ["z"],
        "no assignor in common: the group runs x, y; list one of those as well",
    ),
    "nobody-able": (["x:5-6"], UNABLE),
    "nobody-able-with-one-of-several": (["z", "x:5-6"], UNABLE),
}


@pytest.mark.parametrize(("listed", "message"), REFUSED.values(), ids=REFUSED)
def test_a_newcomer_that_would_leave_nobody_able_is_refused_and_the_group_runs_on(
    listed: list[str], message: str
) -> None:
    decider = Decider()
    join(decider, "A", "x:0-3", "y")
    decider.compute()
    before = (decider.group.end, decider.soft)
    reply = join(decider, "B", *listed)
    assert (reply.error, reply.message) == (Error.UNSUPPORTED_ASSIGNOR, message)
    assert (decider.group.end, decider.soft) == before


def test_a_known_members_incompatible_change_leaves_everything_as_it_was() -> None:
    decider = Decider()
    join(decider, "A", "x:0-3")
    join(decider, "B", "x:0-3")
    decider.compute()
    before = (decider.group.end, decider.soft, decider.member("B"))
    change = Heartbeat("connect", "B", 0, "1", owned=(), assignors=(assignor("z"),))
    reply = decider.heartbeat(change)
    assert reply.error is Error.UNSUPPORTED_ASSIGNOR
    assert (decider.group.end, decider.soft, decider.member("B")) == before


def test_a_member_may_not_write_a_version_that_nobody_reads_though_its_range_stays() -> None:
    decider = Decider()
    join(decider, "A", "x:0-3@1")
    join(decider, "B", "x:2-5@3")
    end = decider.group.end
    change = Heartbeat("connect", "B", 0, "1", owned=(), assignors=(assignor("x:2-5@5"),))
    assert decider.heartbeat(change).error is Error.UNSUPPORTED_ASSIGNOR
    assert decider.group.end == end


def test_who_does_not_help_a_group_that_nobody_can_compute_for_is_told_how_to_join() -> None:
    decider = Decider()
    join(decider, "A", "x:0-9@5")
    join(decider, "B", "x:0-3@1")
    join(decider, "C", "x:4-6@6")
    decider.settle()
    decider.carry_out(Heartbeat("connect", "A", -1, "1"))
    reply = join(decider, "D", "x:0-3@1")
    assert (reply.error, reply.message) == (
        Error.UNSUPPORTED_ASSIGNOR,
        "the others have no assignor that one of them can run for all: name a ServerAssignor",
    )
    served = replace(JOIN, assignors=None, server_assignor="range")
    assert decider.join("D", served).error is Error.NONE
    assert decider.group.target.assignor == "range"


def test_a_member_that_is_away_for_a_while_is_not_asked_to_compute() -> None:
    decider = Decider()
    decider.join("A", replace(JOIN, instance_id="a"))
    decider.join("B")
    decider.heartbeat(Heartbeat("connect", "A", -2, "1", instance_id="a"))
    assert decider.beat("B", "").error is COMPUTE
