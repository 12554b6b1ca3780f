"""What takes a whole log to tell is told apart: nobody else waits for it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import httpx
import pytest
from msgspec import to_builtins
from rest.conftest import RestApi

from fairlead.actors.messages.commands import ExpireSession
from fairlead.events.log.reader import LogReader
from fairlead.events.model import Resource, RunState
from fairlead.projections.explain.cache import EpochCache, NotToldError
from fairlead.projections.explain.reader import EpochReader
from fairlead.projections.follow.rebalances import Rebalances
from fairlead.runtime.interfaces.replies.epochs import describe_epoch
from fairlead.runtime.interfaces.rest.commands.service import SerialExecutor
from fairlead.runtime.interfaces.rest.routes.groups import plan
from fairlead.runtime.interfaces.rest.server.errors import ApiError

SECONDS = 60
ADD = {"add_workers": 1}
EPOCHS: tuple[int | str, ...] = ("latest", 0, 1, 2, 3, 4, 5)


class Held:
    """A step that waits, the first time, until it is let go on."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: type, step: str) -> None:
        self.begun, self.may_go_on = Event(), Event()
        original = getattr(owner, step)

        def held(*arguments: Any) -> Any:
            if not self.begun.is_set():
                self.begun.set()
                assert self.may_go_on.wait(SECONDS)
            return original(*arguments)

        patch.setattr(owner, step, held)


def live(api: RestApi) -> None:
    """W1 joins and is given connector a, which splits into one task."""
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    api.group.ask("report", Resource("a", 0), RunState.RUNNING, "batches run")


@pytest.mark.parametrize(
    ("step", "method", "path", "body"),
    [
        ((EpochReader, "apply"), "GET", "/groups/connect/history", None),
        ((EpochReader, "apply"), "GET", "/groups/connect/explain/latest", None),
        ((Rebalances, "catch_up"), "GET", "/metrics", None),
        ((EpochReader, "apply"), "POST", "/groups/connect/plan", ADD),
    ],
)
def test_reads_are_answered_while_somebody_reads_a_whole_log(
    api: RestApi,
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[type, str],
    method: str,
    path: str,
    body: dict[str, int] | None,
) -> None:
    live(api)
    held = Held(monkeypatch, *step)
    with ThreadPoolExecutor() as threads:
        told = threads.submit(api.client.request, method, path, json=body)
        assert held.begun.wait(SECONDS)
        try:
            paths = ("/connectors", "/connectors/a/status", "/groups/connect", "/health")
            replies = [threads.submit(api.client.get, each) for each in paths]
            statuses = [each.result(SECONDS).status_code for each in replies]
            assert (statuses, told.done()) == ([200] * len(paths), False)
        finally:
            held.may_go_on.set()
        assert told.result(SECONDS).status_code == 200


def test_figures_and_plans_do_not_wait_for_an_explanation(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(api)
    monkeypatch.setattr(plan, "HISTORY_SECONDS", 0.1)
    held = Held(monkeypatch, EpochReader, "apply")
    with ThreadPoolExecutor() as threads:
        told = threads.submit(api.client.get, "/groups/connect/explain/latest")
        assert held.begun.wait(SECONDS)
        try:
            figures = threads.submit(api.client.get, "/metrics")
            planned = threads.submit(api.client.post, "/groups/connect/plan", json=ADD)
            assert figures.result(SECONDS).status_code == 200
            assert planned.result(SECONDS).json()["warnings"] == [plan.UNREAD]
        finally:
            held.may_go_on.set()
        assert told.result(SECONDS).json()["group_epoch"] == 2


def test_who_asks_again_and_again_is_told_what_the_files_say(api: RestApi) -> None:
    def told() -> list[httpx.Response]:
        paths = ["history", "history?limit=1", *(f"explain/{each}" for each in EPOCHS)]
        return api.client.get_all(f"/groups/connect/{each}" for each in paths)

    def explained(epoch: int | str) -> object:
        try:
            return to_builtins(
                describe_epoch(epochs.explain(None if epoch == "latest" else int(epoch)))
            )
        except NotToldError as untold:
            return {"error_code": 404, "message": str(untold)}

    told()
    live(api)
    told()
    api.group.ask("pass_time", 5_000)
    api.group.ask("seat", "w2")
    told()
    api.group.ask("carry_out", ExpireSession("W1"))
    told()
    api.group.ask("settle")
    last = [each.json() for each in told()]
    api.service.logs.close()
    with LogReader.open(api.data_dir / "groups" / "connect" / "control") as log:
        epochs = EpochCache(log)
        histories = [to_builtins(epochs.history(limit)) for limit in (50, 1)]
        assert last == [*histories, *map(explained, EPOCHS)]


def test_who_waits_too_long_for_a_turn_is_told_to_come_again() -> None:
    begun, may_go_on = Event(), Event()

    def first() -> str:
        begun.set()
        assert may_go_on.wait(SECONDS)
        return "told"

    async def ask(executor: SerialExecutor) -> str:
        telling = asyncio.create_task(executor.run(first))
        await asyncio.to_thread(begun.wait, SECONDS)
        with pytest.raises(ApiError, match="other requests that read whole logs are running"):
            await executor.run(lambda: "never")
        may_go_on.set()
        return await telling

    executor = SerialExecutor(wait_seconds=0)
    assert asyncio.run(ask(executor)) == "told"
    executor.close()
