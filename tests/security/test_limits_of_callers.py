"""Pauses after wrong passwords, limits of requests, and of passwords that are checked at once."""

import asyncio

import pytest

from fairlead.runtime.security.proofs.entries import AccessEntries, AccessEntry, EntryKind
from fairlead.runtime.security.proofs.passwords import (
    MOST_OF_ADDRESS,
    MOST_WAITING,
    PasswordChecks,
    TooManyChecksError,
    hash_password,
)
from fairlead.runtime.security.rights import Access, Grant, Right, Role, parse_patterns
from fairlead.runtime.security.throttling import (
    FORGOTTEN_SECONDS,
    FREE_FAILURES,
    FREE_FAILURES_OF_NAME,
    LONGEST_PAUSE,
    MOST_KEPT,
    NAME_PAUSE,
    FailedLogins,
    RequestRate,
    network_of,
)


class Clock:
    """A time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_wrong_password_after_the_free_ones_costs_a_longer_pause_up_to_a_longest() -> None:
    clock = Clock()
    failed, pauses = FailedLogins(clock), list[float]()
    for _ in range(FREE_FAILURES + 8):
        failed.note("192.0.2.7", "ann")
        pauses.append(failed.address_waits("192.0.2.7"))
    assert pauses == [0.0] * FREE_FAILURES + [1, 2, 4, 8, 16, *[LONGEST_PAUSE] * 3]
    assert failed.address_waits("192.0.2.8") == 0
    clock.now = LONGEST_PAUSE - 1
    assert failed.address_waits("192.0.2.7") == 1
    clock.now = FORGOTTEN_SECONDS + 1
    failed.note("192.0.2.7", "ann")
    assert failed.address_waits("192.0.2.7") == 0


def test_a_name_that_is_guessed_from_many_addresses_is_slowed_a_little() -> None:
    failed = FailedLogins(Clock())
    for number in range(FREE_FAILURES_OF_NAME + 1):
        assert failed.name_waits("ann") == 0
        failed.note(f"192.0.2.{number}", "ann")
    assert (failed.name_waits("ann"), failed.name_waits("ben")) == (NAME_PAUSE, 0)


def test_whatever_is_sent_only_so_much_is_kept() -> None:
    failed = FailedLogins(Clock())
    for number in range(MOST_KEPT + FREE_FAILURES):
        failed.note(f"a{number}", f"n{number}")
    kept = failed._by_address, failed._by_name  # pyright: ignore[reportPrivateUsage]
    assert [len(each) for each in kept] == [MOST_KEPT] * 2


def test_an_address_of_ipv6_stands_for_its_network() -> None:
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2::9%eth0")
    assert network_of("2001:db8:1:2::1") != network_of("2001:db8:1:3::1")
    assert [network_of(each) for each in ("192.0.2.7", "", "x")] == ["192.0.2.7", "", "x"]


def test_a_caller_may_send_a_seconds_requests_at_once_and_then_as_time_passes() -> None:
    clock = Clock()
    rate = RequestRate(2, clock)
    assert [rate.wait_seconds("ann") for _ in range(3)] == [0, 0, 0.5]
    assert rate.wait_seconds("ben") == 0
    clock.now = 0.5
    assert [rate.wait_seconds("ann") for _ in range(2)] == [0, 0.5]
    assert [RequestRate(0, clock).wait_seconds("ann") for _ in range(9)] == [0] * 9


def test_no_address_has_more_passwords_checked_at_once_than_its_part() -> None:
    entries = AccessEntries(
        {"ann": AccessEntry("ann", EntryKind.USER, Role.ADMIN, hash_password("correct horse"))}
    )

    async def check() -> None:
        checks = PasswordChecks()
        many = [checks.check(entries, "ann", "x", "192.0.2.7") for _ in range(MOST_OF_ADDRESS + 3)]
        other = checks.check(entries, "ann", "correct horse", "192.0.2.8")
        *ended, right = await asyncio.gather(*many, other, return_exceptions=True)
        assert ended[:MOST_OF_ADDRESS] == [False] * MOST_OF_ADDRESS
        assert {*map(type, ended[MOST_OF_ADDRESS:])} == {TooManyChecksError}
        assert right is True
        others = [checks.check(entries, "ben", "x", f"a{n}") for n in range(MOST_WAITING)]
        tasks = [asyncio.ensure_future(each) for each in others]
        await asyncio.sleep(0)
        with pytest.raises(TooManyChecksError):
            await checks.check(entries, "ann", "correct horse", "192.0.2.9")
        for each in tasks:
            each.cancel()

    asyncio.run(check())


def test_grants_add_up_and_a_pattern_is_of_the_whole_name() -> None:
    whole, part = Role.VIEWER, Grant(frozenset({Right.VIEW, Right.OPERATE}), ("orders-?", "b"))
    access = Access((*Access.of(whole).grants, part))
    assert access.has(Right.OPERATE, "orders-1")
    assert not access.has(Right.OPERATE, "orders-12")
    assert not access.has(Right.OPERATE, "B")
    assert (access.is_limited, access.has_everywhere(Right.OPERATE)) == (False, False)
    assert Access((part,)).patterns == ("orders-?", "b")
    assert parse_patterns(" a*, b ") == ("a*", "b")
    for text in ("a,,b", "x" * 256, "a\nb", ",".join(["a"] * 101)):
        with pytest.raises(ValueError, match="pattern"):
            parse_patterns(text)
