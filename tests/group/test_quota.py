"""A member's token bucket: what it may send, and how long it is to wait beyond that."""

from fairlead.actors.group.members.request_filter import BURST, Quota

LONGEST_MS = 3_000


def charges(quota: Quota, count: int, now_ms: int = 0, member: str = "a") -> list[int]:
    return [quota.charge(member, 10, now_ms, LONGEST_MS) for _ in range(count)]


def test_a_burst_is_free_and_each_request_beyond_it_waits_its_share_of_a_second_longer() -> None:
    assert charges(Quota(), BURST + 3) == [0] * BURST + [200, 300, 400]


def test_who_waits_as_told_may_go_on() -> None:
    quota = Quota()
    charges(quota, BURST + 3)
    assert charges(quota, 2, now_ms=400) == [0, 200]
    assert charges(quota, 1, now_ms=600) == [0]


def test_who_keeps_to_its_rate_never_waits() -> None:
    quota = Quota()
    assert [quota.charge("a", 10, now, LONGEST_MS) for now in range(0, 60_000, 100)] == [0] * 600


def test_a_full_bucket_holds_no_more_than_a_burst() -> None:
    quota = Quota()
    charges(quota, 1)
    assert charges(quota, BURST + 1, now_ms=1_000_000) == [0] * BURST + [200]


def test_no_wait_is_longer_than_the_longest() -> None:
    waits = charges(Quota(), 1_000)
    assert (max(waits), waits[-1]) == (LONGEST_MS, LONGEST_MS)


def test_the_wait_is_rounded_up() -> None:
    quota = Quota()
    assert [quota.charge("a", 3, 0, LONGEST_MS) for _ in range(BURST + 1)][-1] == 667


def test_each_member_has_a_bucket_of_its_own() -> None:
    quota = Quota()
    charges(quota, BURST + 1)
    assert charges(quota, 1, member="b") == [0]


def test_a_member_that_is_gone_begins_anew() -> None:
    quota = Quota()
    charges(quota, BURST + 1)
    quota.forget("a")
    assert charges(quota, 1) == [0]


def test_without_a_rate_nobody_waits() -> None:
    quota = Quota()
    assert [quota.charge("a", 0, 0, LONGEST_MS) for _ in range(100)] == [0] * 100


def test_a_new_rate_is_good_at_once() -> None:
    quota = Quota()
    charges(quota, BURST + 3)
    assert quota.charge("a", 1_000, 300, LONGEST_MS) > 0, "the debt stands"
    assert quota.charge("a", 1_000, 1_000, LONGEST_MS) == 0
