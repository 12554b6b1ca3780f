"""Quotas of principals: the use that is allowed, and the pause that is told and kept."""
# pyright: basic

import asyncio
from pathlib import Path

import pytest

from fairlead.runtime.kafka import connection
from fairlead.runtime.kafka.security import quotas
from fairlead.runtime.kafka.security.quotas import ClientQuotas
from fairlead.runtime.kafka.wire.served import HEARTBEAT, LIST_GROUPS
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.sasl import PASSWORDS, authenticate, guarded, plain, shake
from fairlead_tests.kafka_listener.served import Client, Served
from fairlead_tests.kafka_listener.spoken import ask

BEAT = {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}


class VirtualClock:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_second_is_allowed_at_once_and_what_is_beyond_has_to_wait() -> None:
    clock = VirtualClock()
    limits = ClientQuotas(10, 0, clock)
    assert [limits.use("User:a", 1, 999) for _ in range(10)] == [0.0] * 10
    assert limits.use("User:a", 1, 0) == pytest.approx(0.1)
    assert limits.use("User:b", 1, 0) == 0.0
    clock.now = 0.1
    assert limits.use("User:a", 1, 0) == pytest.approx(0.1)
    clock.now = 5.0
    assert limits.use("User:a", 1, 0) == 0.0


def test_bytes_count_beside_requests_and_no_pause_is_longer_than_the_longest() -> None:
    clock = VirtualClock()
    limits = ClientQuotas(10, 1_000, clock)
    assert limits.use("User:a", 1, 3_000) == pytest.approx(2.0)
    assert limits.use("User:a", 0, 1 << 40) == quotas.LONGEST_SECONDS
    clock.now = 60.0
    assert limits.use("User:a", 0, 0) == quotas.LONGEST_SECONDS


def test_as_many_principals_are_remembered_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quotas, "MOST_PRINCIPALS", 2)
    limits = ClientQuotas(1, 0, VirtualClock())
    for name in ("a", "b", "a", "c"):
        limits.use(name, 1, 0)
    assert [*limits._usage] == ["a", "c"]


async def log_in(served: Served) -> Client:
    client = await served.dial()
    await shake(client, "PLAIN")
    await authenticate(client, plain("ann", PASSWORDS["ann"]))
    return client


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the pauses of connections in seconds, none of which lasts."""
    kept: list[int] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds > 0.5:
            kept.append(round(seconds))
        await sleep(0)

    monkeypatch.setattr(connection, "sleep", pause)
    return kept


def test_a_response_tells_the_pause_that_its_connection_keeps(
    tmp_path: Path, pauses: list[int]
) -> None:
    async def play(served: Served, _: Behind) -> None:
        assert served.access.quotas is not None
        served.access.quotas._clock = VirtualClock()
        client = await log_in(served)
        for seconds in range(4):  # those of authentication do not count
            answer = await ask(client, HEARTBEAT, 2, **BEAT)
            assert answer["ThrottleTimeMs"] == seconds * 1_000
        other = await log_in(served)  # the quota is that of the user
        answer = await ask(other, LIST_GROUPS, 1)
        assert answer["ThrottleTimeMs"] == 4_000
        await ask(other, LIST_GROUPS, 0)  # this version has no field for it
        await ask(other, LIST_GROUPS, 1)
        assert pauses[:5] == [1, 2, 3, 4, 5]

    guarded(tmp_path, play, requests_per_second=1)


def test_no_request_is_throttled_within_the_quota(tmp_path: Path, pauses: list[int]) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await log_in(served)
        for _turn in range(4):
            assert (await ask(client, HEARTBEAT, 2, **BEAT))["ThrottleTimeMs"] == 0
        assert pauses == []

    guarded(tmp_path, play, requests_per_second=1_000, bytes_per_second=1_000_000)
