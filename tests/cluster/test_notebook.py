"""The notebook of deploy/ runs against a real node, whose events both clients follow."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairlead.client import AsyncClient, Client, ClientError, EventInfo
from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import launch_fork, without_remains
from fairlead_tests.pages import HOUSE

pytestmark = pytest.mark.cluster
NOTEBOOK = HOUSE / "deploy" / "notebook" / "fairlead.ipynb"


class Served(NamedTuple):
    """A node that is up, and where it serves REST."""

    node: Node
    url: str
    socket: str


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A node with two workers that run nothing."""
    settings = (
        f"data.dir={tmp_path / 'data'}",
        "engine=noop",
        "workers=2",
        "listeners=http://127.0.0.1:0",
    )
    with without_remains() as nodes:
        process = launch_fork(tmp_path, "fairlead_tests.cluster.up_process", "up", *settings)
        process.stdin.close()
        process.stdout.close()
        nodes.append(node := Node(tmp_path, process))
        log = tmp_path / "stderr"
        eventually(lambda: "is up with" in log.read_text(), "the node is up")
        note = json.loads((tmp_path / "data" / "run" / "node.json").read_text())
        with Client(note["rest"]) as client:
            eventually(lambda: len(client.workers().workers) == 2, "both workers are there")
        yield Served(node, note["rest"], note["socket"])


async def read_until(events: AsyncIterator[EventInfo], text: str) -> list[EventInfo]:
    """Return events, until one begins with a text."""
    read: list[EventInfo] = []
    async for each in events:
        read.append(each)
        if each.text.startswith(text):
            break
    return read


async def watch(served: Served, folder: Path, *, kills: bool) -> list[str]:
    """Pause a connector, resume it, perhaps after REST was killed; return what happened."""
    (folder / "in").mkdir()
    config = {
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": str(folder / "in"),
        "sink.format": "parquet",
        "sink.path": str(folder / "out"),
    }
    async with AsyncClient(socket=served.socket) as client:
        await client.create("watched", config)
        await client.wait("watched")
        events = await client.events()
        await client.pause("watched")
        read = await read_until(events, "watched-0 is paused")
        if kills:
            served.node.hit("rest connect")
        while True:
            with suppress(ClientError):
                await client.resume("watched")
                break
            await asyncio.sleep(0.05)
        read += await read_until(events, "watched-0 runs")
        await events.aclose()
        past = (await client.past_events()).events
    assert past[past.index(read[0]) :][: len(read)] == read, "each of them once, and in order"
    return [each.text.partition(" by ")[0] for each in read if "is to be" in each.text]


ORDERS = ["connector watched is to be PAUSED", "connector watched is to be RUNNING"]


def test_the_notebook_runs_and_both_clients_follow_events(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FAIRLEAD_URL", served.url)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["plan"].moves
    assert names["event"].text == "target for epoch 5 by balanced: 2 moved, 3 kept"
    assert "404 No status found for connector nobody" in capsys.readouterr().out
    assert asyncio.run(watch(served, tmp_path, kills=False)) == ORDERS


@pytest.mark.soak
def test_events_go_on_when_rest_is_killed(served: Served, tmp_path: Path) -> None:
    assert asyncio.run(watch(served, tmp_path, kills=True)) == ORDERS
