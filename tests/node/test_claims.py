"""When a node claims the group of its cluster, and what it is to it."""

from dataclasses import replace

import pytest

from fairlead.events.records import OwnerBegan, OwnerResigned
from fairlead.events.stores.port import Claimant, StoreOwner
from fairlead.runtime.node.door.claims import (
    RANKS_PER_SILENCE,
    ClaimRule,
    NodeRole,
    RoleEnding,
    RoleTracker,
    Sight,
)

RULE = ClaimRule("n2", "folder 2", 3.0)
OTHER = StoreOwner(7, Claimant("n1", "h1:9094", "folder 1"), 0.5)
SIGHT = Sight(is_whole=True, owner=OTHER, record=OwnerBegan(7, "n1"), rank=0)


def silent(seconds: float, sight: Sight = SIGHT) -> Sight:
    return replace(sight, owner=OTHER._replace(silent_seconds=seconds))


@pytest.mark.parametrize(("rank", "silence"), [(0, 3.0), (1, 3.1875), (3, 3.5625)])
def test_it_claims_once_the_owner_has_been_silent_the_longer_the_later_its_turn(
    rank: int, silence: float
) -> None:
    sight = replace(SIGHT, rank=rank)
    assert RULE.silence_of_claim(silent(silence - 0.1, sight)) is None
    assert RULE.silence_of_claim(silent(silence, sight)) == silence


def test_it_claims_at_once_if_the_last_claim_was_made_by_a_process_of_its_folder() -> None:
    mine = StoreOwner(7, Claimant("n2", "h2:9094", "folder 2"), 0.1)
    assert RULE.silence_of_claim(replace(SIGHT, owner=mine, rank=3)) == 0.0


def test_a_node_of_the_same_name_with_another_folder_waits_for_silence() -> None:
    other = StoreOwner(7, Claimant("n2", "h2:9094", "folder 3"), 0.1)
    assert RULE.silence_of_claim(replace(SIGHT, owner=other)) is None


def test_it_claims_at_once_if_nobody_ever_has_unless_another_one_does_meanwhile() -> None:
    assert RULE.silence_of_claim(Sight(is_whole=True, owner=None, record=None, rank=2)) == 3.0


def test_it_never_claims_before_both_logs_are_read_to_the_end() -> None:
    mine = StoreOwner(7, Claimant("n2", "h2:9094", "folder 2"), 60.0)
    for owner in (None, mine, OTHER._replace(silent_seconds=60.0)):
        assert RULE.silence_of_claim(replace(SIGHT, is_whole=False, owner=owner)) is None


def test_whom_the_owner_named_when_it_resigned_claims_at_once_and_others_after_a_silence() -> None:
    for_me = replace(SIGHT, record=OwnerResigned(7, "n1", "n2"), rank=2)
    for_other = replace(SIGHT, record=OwnerResigned(7, "n1", "n3"))
    assert RULE.silence_of_claim(for_me) == 0.0
    assert RULE.silence_of_claim(for_other) is None
    assert RULE.silence_of_claim(silent(3.0, for_other)) == 3.0


def test_if_it_named_nobody_all_others_claim_each_in_its_turn() -> None:
    first = silent(0.25, replace(SIGHT, record=OwnerResigned(7, "n1")))
    third = replace(first, rank=2)
    assert RULE.silence_of_claim(first) == 0.0
    assert RULE.silence_of_claim(third) is None
    assert RULE.silence_of_claim(silent(0.375, third)) == 0.375


def test_who_resigned_itself_does_not_take_the_group_back_from_whom_it_named() -> None:
    mine = StoreOwner(7, Claimant("n2", "h2:9094", "folder 2"), 0.1)
    given_up = replace(SIGHT, owner=mine, record=OwnerResigned(7, "n2", "n1"))
    assert RULE.silence_of_claim(given_up) is None
    assert RULE.silence_of_claim(replace(given_up, owner=mine._replace(silent_seconds=3.0))) == 3.0


def test_who_resigned_without_naming_anybody_comes_after_all_others() -> None:
    mine = StoreOwner(7, Claimant("n2", "h2:9094", "folder 2"), 0.6)
    given_up = replace(SIGHT, owner=mine, record=OwnerResigned(7, "n2"))
    assert RULE.silence_of_claim(given_up) is None, "though its turn is the first"
    alone = replace(given_up, owner=mine._replace(silent_seconds=3.0))
    assert RULE.silence_of_claim(alone) == 3.0
    assert ClaimRule("n3", "folder 3", 3.0).silence_of_claim(replace(given_up, rank=3)) == 0.5625


def test_a_resignation_before_the_last_claim_says_nothing_of_it() -> None:
    assert RULE.silence_of_claim(replace(SIGHT, record=OwnerResigned(6, "n1"))) is None


def test_while_it_claims_or_owns_it_does_not_claim_again() -> None:
    role = RoleTracker(RULE)
    assert role.look(silent(1.0)) is None
    assert role.role is NodeRole.FOLLOWS
    assert role.look(silent(3.0)) == 3.0
    assert (role.role, role.look(silent(3.0))) == (NodeRole.CLAIMS, None)
    role.begin()
    assert (role.role, role.look(silent(3.0))) == (NodeRole.OWNS, None)


@pytest.mark.parametrize("ending", RoleEnding)
def test_however_it_ends_it_follows_and_claims_again_when_there_is_a_reason(
    ending: RoleEnding,
) -> None:
    role = RoleTracker(RULE)
    role.look(silent(3.0))
    role.begin()
    assert role.end(ending) is (ending is RoleEnding.FAILED), "a change of role is no failure"
    assert role.role is NodeRole.FOLLOWS
    assert role.look(silent(3.0)) == 3.0


def test_a_claim_that_is_due_is_seen_before_it_is_made_and_the_first_of_all_waits_for_nothing() -> (
    None
):
    tracker = RoleTracker(RULE)
    assert not tracker.would_claim(silent(2.9))
    assert tracker.would_claim(silent(3.0))
    assert not tracker.would_claim(silent(3.0, replace(SIGHT, is_whole=False)))
    assert not tracker.would_claim(replace(SIGHT, owner=None, record=None))
    unheard = replace(silent(5.9), rank=RANKS_PER_SILENCE)
    assert tracker.look(unheard) is None  # its listener does not take connections yet
    assert tracker.look(silent(6.0, unheard)) == 6.0


def test_a_node_that_no_other_reaches_takes_nothing_over_from_one_that_is_reached() -> None:
    alone = ClaimRule("n2", "folder 2", 3.0, is_reachable=False)
    assert alone.silence_of_claim(silent(60.0)) is None
    unreached = OTHER._replace(claimant=Claimant("n1", "", "folder 1"), silent_seconds=6.0)
    assert alone.silence_of_claim(replace(SIGHT, owner=unreached)) == 6.0, "its folder was lost"
    mine = StoreOwner(7, Claimant("n2", "h2:9094", "folder 2"), 0.1)
    assert alone.silence_of_claim(replace(SIGHT, owner=mine)) == 0.0
    given_up = replace(SIGHT, record=OwnerResigned(7, "n1"))
    assert alone.silence_of_claim(silent(2.9, given_up)) is None, "all others come first"
    assert alone.silence_of_claim(silent(3.0, given_up)) == 3.0
