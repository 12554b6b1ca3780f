"""Nobody who reads waits for an actor that hangs: the last answer is served, with its age."""

import asyncio
from dataclasses import replace

import pytest
from rest.conftest import RestApi

from fairlead.runtime.cluster.messages import NodeView, ProcessView, Whereabouts
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.service import KeptAnswer
from fairlead.runtime.interfaces.rest.server.errors import Unanswered
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway


async def hang() -> int:
    await asyncio.Event().wait()
    return 0


async def fail() -> int:
    raise Unanswered("nobody is here")


async def answer() -> int:
    return 7


def test_the_last_answer_is_read_while_the_next_one_does_not_come() -> None:
    async def reads() -> list[tuple[int, bool]]:
        kept = KeptAnswer[int](patience_seconds=0)
        await kept.ask(answer)
        first = await kept.read(hang)
        second = await kept.read(answer)  # the question that hangs is still open
        return [(value, age_ms < 0) for value, age_ms in (first, second)]

    assert asyncio.run(reads()) == [(7, False), (7, False)]


def test_a_question_that_fails_takes_the_last_answer_away() -> None:
    async def fails() -> int | None:
        kept = KeptAnswer[int]()
        assert await kept.read(answer) == (7, 0)
        with pytest.raises(Unanswered, match="nobody is here"):
            await kept.read(fail)
        return kept.last

    assert asyncio.run(fails()) is None


class HangingSupervisor(FakeGateway):
    """A gateway whose supervisor answers until it hangs."""

    hangs = False

    async def describe_node(self) -> NodeView:
        if self.hangs:
            await hang()
        return NodeView(1, (), (ProcessView("w1", 4711, "here/w1", "running", 0),), ())

    async def locate(self, group_id: str) -> Whereabouts:
        if self.hangs:
            await hang()
        return Whereabouts(group_id, "somewhere", 1)


def test_workers_and_status_are_told_while_the_supervisor_hangs(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    gateway = HangingSupervisor(api.group)
    service = replace(
        api.service,
        commands=gateway,
        processes=KeptAnswer[NodeView](patience_seconds=0),
        whereabouts=KeptAnswer[Whereabouts](patience_seconds=0),
    )
    client = Client(make_app(service))
    before = client.get("/workers").json(), client.get("/status").json()
    gateway.hangs = True
    workers, status = client.get("/workers").json(), client.get("/status").json()
    assert workers.pop("processes_age_ms", 0) >= 0
    assert status["workers"].pop("processes_age_ms", 0) >= 0
    assert (workers, status) == before
