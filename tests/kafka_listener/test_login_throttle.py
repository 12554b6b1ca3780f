"""Thousands of wrong passwords wait for each other, and no other client waits for them."""
# pyright: basic

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.kafka.security import session
from fairlead.runtime.kafka.security.login_throttle import LoginThrottle
from fairlead.runtime.kafka.security.mechanisms import AuthenticationFailed
from fairlead.runtime.security.throttling import FREE_FAILURES
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.sasl import (
    PASSWORDS,
    authenticate,
    guarded,
    plain,
    scram,
    shake,
)
from fairlead_tests.kafka_listener.served import Client, Served

ATTACKERS = 30
ELSEWHERE, FURTHER = "127.0.0.2", "127.0.0.3"
ANN = "ann", PASSWORDS["ann"]


async def dial_from(served: Served, address: str) -> Client:
    """Connect from another address of this machine."""
    streams = await asyncio.open_connection("127.0.0.1", served.port, local_addr=(address, 0))
    served.clients.append(client := Client(*streams))
    return client


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_wrong_passwords_of_one_address_hold_up_nobody_who_was_let_in_or_is_elsewhere(
    tmp_path: Path, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "FAILED_SECONDS", 0.0)
    answered = Counter[int]()

    async def log_in(client: Client, user: str, password: str) -> int:
        if mechanism == "PLAIN":
            await shake(client, mechanism)
            answer = await authenticate(client, plain(user, password))
        else:
            answer = await scram(client, mechanism, user, password)
        return int(answer["ErrorCode"])

    async def guess(served: Served, number: int) -> None:
        client = await dial_from(served, ELSEWHERE)
        answered[await log_in(client, f"user{number % 7}", f"guess {number}")] += 1

    async def play(served: Served, _: Behind) -> None:
        assert await log_in(await dial_from(served, ELSEWHERE), *ANN) == 0
        guesses = [asyncio.create_task(guess(served, each)) for each in range(ATTACKERS)]
        while answered.total() <= FREE_FAILURES:
            await asyncio.sleep(0.001)
        assert await log_in(await dial_from(served, ELSEWHERE), *ANN) == 0
        assert await log_in(await dial_from(served, FURTHER), "bob,=", PASSWORDS["bob,="]) == 0
        assert answered.total() < ATTACKERS
        for each in guesses:
            each.cancel()
        await asyncio.gather(*guesses, return_exceptions=True)

    guarded(tmp_path, play)


def test_after_some_wrong_passwords_of_an_address_each_further_one_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def pass_over(seconds: float) -> None:
        pauses.append(seconds)

    throttle: Any = LoginThrottle()

    async def fail(number: int) -> None:
        with pytest.raises(AuthenticationFailed):
            async with throttle.attempt("10.0.0.1", f"u{number}" * 1_000):
                raise AuthenticationFailed("wrong")

    async def run() -> None:
        for number in range(10_000):
            await fail(number)

    monkeypatch.setattr(asyncio, "sleep", pass_over)
    asyncio.run(run())
    assert not any(pauses[: FREE_FAILURES + 1])
    assert all(pauses[FREE_FAILURES + 1 :])
    assert max(pauses) > 20
