"""How the incremental assignor gets to where the deferred one goes at once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.assignors.built_in import counting
from fairlead.actors.assignors.built_in.incremental import assign
from fairlead.actors.assignors.eligibility import eligible
from fairlead.actors.messages.computing import Assignment, MemberView, Snapshot
from fairlead.events.model import Resource
from fairlead.events.placement import COLD
from fairlead_tests.assignors.drawn import ordered, snapshots
from fairlead_tests.assignors.snapshots import (
    DEADLINE_MS,
    NOW_MS,
    after,
    loss,
    member,
    snapshot,
    work,
)

INTERVAL_MS = 1_000
SIX = "A-0 A-1 A-2 A-3 A-4 A-5"


def spent(moves: int, at_ms: int = NOW_MS) -> bytes:
    return b'{"moves":%d,"at_ms":%d}' % (moves, at_ms)


def installed(group: Snapshot, made: Assignment, now_ms: int) -> Snapshot:
    """Return the group at a later time, when everybody has what was assigned."""
    return replace(after(group, made), assignor_metadata=made.metadata, now_ms=now_ms)


def rounds(group: Snapshot, moves: int) -> Iterator[tuple[Snapshot, Assignment]]:
    """Yield what each round starts from and comes to, until nothing is left to be moved.

    Those that are there wait no longer for those that are away.
    """
    made = Assignment({}, again_at_ms=group.now_ms)
    while made.again_at_ms:
        made = assign(group, moves, INTERVAL_MS)
        yield group, made
        group = installed(group, made, made.again_at_ms)
        is_anyone_away = any(each.member_epoch < 0 for each in group.members.values())
        if is_anyone_away and not moved(group, counting.assign_deferred(group)):
            return


def moved(group: Snapshot, made: Assignment) -> set[Resource]:
    """Return what went to another member though who has it could go on running it."""
    takers = eligible(group.members).takers
    at_home = dict[Resource, str]()
    for has in ("owned", "target"):
        for each in reversed(takers):
            at_home.update(dict.fromkeys(getattr(each, has), each.member_id))
    return {
        each
        for member_id, share in made.members.items()
        for each in share - group.members[member_id].target
        if at_home.get(each, member_id) != member_id
        and (group.members[at_home[each]].worker or at_home[each])
        in group.pins.get(each, (group.members[at_home[each]].worker or at_home[each],))
    }


def counts(made: Assignment) -> list[tuple[int, int]]:
    """Return how many connectors and tasks each worker has, of each kind in order."""
    tasks = [sum(each.is_task for each in share) for share in made.members.values()]
    sizes = [len(share) for share in made.members.values()]
    connectors = [size - count for size, count in zip(sizes, tasks, strict=True)]
    return list(zip(sorted(connectors), sorted(tasks), strict=True))


# What a round does.


def test_no_more_moves_in_a_round_than_the_budget_allows_and_the_next_is_due() -> None:
    made = assign(snapshot(SIX, member("W1", SIX), member("W2")), 2, INTERVAL_MS)
    assert made == Assignment(
        {"W1": work("A-0 A-1 A-2 A-5"), "W2": work("A-3 A-4")},
        metadata=spent(2),
        again_at_ms=NOW_MS + INTERVAL_MS,
    )


def test_where_the_budget_suffices_it_is_the_deferred_assignors_result_and_nothing_is_due() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"))
    assert assign(group, 3, INTERVAL_MS) == replace(
        counting.assign_deferred(group), metadata=spent(3)
    )


def test_at_rest_nothing_moves_and_nothing_is_due() -> None:
    group = snapshot("A-0 A-1", member("W1", "A-0"), member("W2", "A-1"))
    assert assign(group, 1, INTERVAL_MS) == Assignment({"W1": work("A-0"), "W2": work("A-1")})


def test_the_first_to_move_go_from_the_fullest_to_the_emptiest() -> None:
    eight = "A-0 A-1 A-2 A-3 A-4 A-5 A-6 A-7"
    five = "B-0 B-1 B-2 B-3 B-4"
    group = snapshot(f"{eight} {five} C", member("W1", five), member("W2", eight), member("W3"))
    made = assign(group, 3, INTERVAL_MS)
    assert {name: len(share) for name, share in made.members.items()} == {"W1": 6, "W2": 5, "W3": 3}
    assert moved(group, made) <= work(eight)


def test_connectors_and_tasks_share_the_budget_and_the_larger_difference_goes_first() -> None:
    group = snapshot(f"A B C {SIX}", member("W1", f"A B C {SIX}"), member("W2"))
    assert moved(group, assign(group, 2, INTERVAL_MS)) == work("A-3 A-4")


def test_what_is_revoked_already_goes_where_it_was_to_go_at_no_cost() -> None:
    w1, w2 = member("W1", "A-0 A-1", owned="A-0 A-1 A-2 A-3"), member("W2", "A-2 A-3", owned="")
    group = snapshot("A-0 A-1 A-2 A-3", w1, w2)
    assert assign(group, 1, INTERVAL_MS) == Assignment(
        {"W1": work("A-0 A-1"), "W2": work("A-2 A-3")}
    )


# What is not bounded.


@pytest.mark.parametrize(
    "leaving",
    [
        replace(member("W1", SIX), draining=True),
        member("W1", SIX, metadata=COLD),
        replace(member("W1", SIX, url="http://one"), joined_epoch=-1),
    ],
    ids=["drained", "not warm", "dying"],
)
def test_work_that_has_to_leave_goes_at_once(leaving: MemberView) -> None:
    group = snapshot(SIX, leaving, member("W2", url=leaving.url))
    assert assign(group, 1, INTERVAL_MS) == Assignment({"W1": work(""), "W2": work(SIX)})


def test_work_that_its_worker_may_not_run_any_more_goes_at_once() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"))
    pinned = replace(group, pins=dict.fromkeys(work("A-0 A-1 A-2"), ("W2",)))
    made = assign(pinned, 1, INTERVAL_MS)
    assert made == Assignment({"W1": work("A-3 A-4 A-5"), "W2": work("A-0 A-1 A-2")})


def test_new_and_fired_work_is_dealt_at_once_though_moves_are_left() -> None:
    lost = (loss("W9", "B-0 B-1"),)
    w1, w2 = member("W1", SIX), member("W2")
    group = snapshot(f"{SIX} B-0 C-0", w1, w2, losses=lost, fired="B-0 B-1")
    made = assign(group, 1, INTERVAL_MS)
    assert made.members == {"W1": work("A-0 A-1 A-2 A-3 A-5"), "W2": work("A-4 B-0 C-0")}
    assert made.again_at_ms == NOW_MS + INTERVAL_MS


def test_lost_work_is_parked_and_goes_to_who_returns_at_no_cost() -> None:
    lost = (loss("W2", "B-0 B-1", url="http://two"),)
    crashed = snapshot("A-0 A-1 B-0 B-1", member("W1", "A-0 A-1"), losses=lost)
    assert assign(crashed, 1, INTERVAL_MS).parked == dict.fromkeys(work("B-0 B-1"), DEADLINE_MS)
    back = replace(crashed, members={**crashed.members, "W9": member("W9", "", url="http://two")})
    assert assign(back, 1, INTERVAL_MS) == Assignment(
        {"W1": work("A-0 A-1"), "W9": work("B-0 B-1")}
    )


# Who is away.


def away(name: str, target: str = "") -> MemberView:
    return replace(member(name, target), member_epoch=-2)


def test_where_who_is_away_would_be_given_work_if_it_were_back_another_round_is_due() -> None:
    group = snapshot(SIX, member("W1", "A-0 A-1 A-2"), member("W2", "A-3 A-4 A-5"), away("W3"))
    made = assign(group, 1, 30_000)
    assert moved(group, made) == set()
    assert made.again_at_ms == NOW_MS + 30_000


def test_what_was_just_dealt_counts_for_what_a_return_would_leave_to_move() -> None:
    group = snapshot("A-0 A-1 B-0", member("W1", "A-0"), away("W2", "A-1"))
    made = assign(group, 1, INTERVAL_MS)
    assert made == Assignment({"W1": work("A-0 B-0"), "W2": work("A-1")})


def test_where_who_is_away_has_its_share_nothing_is_due() -> None:
    group = snapshot("A-0 A-1", member("W1", "A-0"), away("W2", "A-1"))
    assert assign(group, 1, INTERVAL_MS) == Assignment({"W1": work("A-0"), "W2": work("A-1")})


# The budget over several rounds.


def test_a_round_that_comes_early_has_the_rest_of_the_budget_only() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"))
    group = replace(group, assignor_metadata=spent(4, NOW_MS - 10))
    made = assign(group, 5, INTERVAL_MS)
    assert (len(moved(group, made)), made.metadata) == (1, spent(5))
    assert made.again_at_ms == NOW_MS + INTERVAL_MS


def test_a_round_that_comes_early_and_has_nothing_left_moves_nothing_and_waits_as_before() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"), member("W3"))
    before = spent(2, NOW_MS - 10)
    made = assign(replace(group, assignor_metadata=before), 2, 3 * INTERVAL_MS)
    assert made == Assignment(
        {"W1": work(SIX), "W2": work(""), "W3": work("")},
        metadata=before,
        again_at_ms=NOW_MS - 10 + 3 * INTERVAL_MS,
    )


def test_the_next_round_is_never_less_than_a_second_ahead() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"))
    spent_before = replace(group, assignor_metadata=spent(1, NOW_MS - INTERVAL_MS + 1))
    made = [assign(spent_before, 1, INTERVAL_MS), assign(group, 1, 1)]
    assert [each.again_at_ms for each in made] == [NOW_MS + 1_000] * 2


def test_after_a_whole_interval_there_is_a_whole_budget_again() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"))
    group = replace(group, assignor_metadata=spent(2, NOW_MS - INTERVAL_MS))
    assert assign(group, 2, INTERVAL_MS).metadata == spent(2)


@given(snapshots(), st.integers(1, 3), st.lists(st.integers(0, 1_500), min_size=1, max_size=6))
def test_no_interval_has_more_moves_than_the_budget_whenever_rounds_come(
    group: Snapshot, moves: int, waits: list[int]
) -> None:
    made_at = Counter[int]()
    for turn, wait_ms in enumerate(waits):
        newcomer = member(f"N{turn}")
        group = replace(group, members={**group.members, newcomer.member_id: newcomer})
        made = assign(group, moves, INTERVAL_MS)
        made_at[group.now_ms] += len(moved(group, made))
        group = installed(group, made, group.now_ms + wait_ms)
    for since in made_at:
        window = (count for at, count in made_at.items() if since <= at < since + INTERVAL_MS)
        assert sum(window) <= moves


@given(ordered(), st.integers(1, 2))
def test_rounds_end_where_the_deferred_assignor_would_move_nothing(
    group: Snapshot, moves: int
) -> None:
    made = Assignment({})
    for before, made in rounds(replace(group, losses=(), parked={}), moves):
        group = installed(before, made, before.now_ms)
        assert len(moved(before, made)) <= moves
    settled = replace(made, metadata=b"", again_at_ms=0)
    assert counting.assign_deferred(replace(group, assignor_metadata=b"")) == settled


@given(snapshots(), st.integers(1, 3))
def test_rounds_come_to_the_deferred_balance_with_not_one_move_more(
    group: Snapshot, moves: int
) -> None:
    group = replace(group, losses=(), parked={})
    at_once = counting.assign_deferred(group)
    made_in = [(len(moved(before, made)), made) for before, made in rounds(group, moves)]
    assert sum(count for count, _ in made_in) == len(moved(group, at_once))
    assert all(count == moves for count, _ in made_in[:-1])
    assert counts(made_in[-1][1]) == counts(at_once)


def test_a_drain_half_way_is_carried_out_at_once_and_the_rest_goes_on() -> None:
    group = snapshot(SIX, member("W1", SIX), member("W2"), member("W3"))
    half_way = installed(group, assign(group, 1, INTERVAL_MS), NOW_MS + 10)
    drained = next(each for each in ("W2", "W3") if half_way.members[each].target)
    members = {**half_way.members, drained: replace(half_way.members[drained], draining=True)}
    *_, (_, made) = rounds(replace(half_way, members=members), 1)
    assert made.members[drained] == frozenset()
    assert sorted(map(len, made.members.values())) == [0, 3, 3]
