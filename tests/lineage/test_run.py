# pyright: basic
"""What a server of OpenLineage is told of tasks that read and write."""

import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.lineage import run as lineage
from fairlead.runtime.pipeline.stores.files.sink.sink_type import FilesSinkType
from fairlead.runtime.pipeline.tasks.reports import BatchDone, TaskConfigsChanged, Warned
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

KEY = "a-secret-key"


class Receiver:
    """A server that takes events, or refuses them; they are kept with the keys they came with."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.status = 201
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.keys.add(self.headers["Authorization"])
                if receiver.status < 400:
                    assert self.path == "/api/v1/lineage"
                    receiver.events.append(json.loads(body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def config(tmp_path: Path, receiver: Receiver) -> dict[str, str]:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,name\n1,x\n2,y\n3,z\n")
    return {
        "name": "orders",
        "connector.class": "SparkPipeline",
        "source.path": str(tmp_path / "in"),
        "source.format": "csv",
        "sink.path": str(tmp_path / "out"),
        "sink.format": "json",
        "transforms": "t",
        "transforms.t.type": "sql",
        "transforms.t.query": "SELECT id * 2 AS n, name FROM input WHERE id > 1",
        "openlineage.url": receiver.url,
        "openlineage.api.key": KEY,
    }


Start = Callable[[Mapping[str, str]], tuple[Runner, Reports]]


@pytest.fixture
def start(engine: Embedded) -> Iterator[Start]:
    made: list[Runner] = []

    def begin(config: Mapping[str, str]) -> tuple[Runner, Reports]:
        reports = Reports()
        runner = Runner(engine, MemoryLedger(), find_plugins(), reports)
        made.append(runner)
        runner.start(Launch(Resource("orders"), Token(1, 0), config, config))
        split = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(split, TaskConfigsChanged)
        task = Resource("orders", 0)
        runner.start(Launch(task, Token(1, 0), config, split.configs[0]))
        return runner, reports

    yield begin
    for each in made:
        each.close(60)


def batch(reports: Reports) -> None:
    reports.wait(lambda each: isinstance(each, BatchDone))


@pytest.mark.spark
def test_a_run_tells_what_was_read_and_written_by_columns_and_in_rows(
    config: dict[str, str], receiver: Receiver, start: Start, tmp_path: Path
) -> None:
    runner, reports = start(config)
    batch(reports)
    runner.close(60)
    first, last = receiver.events
    assert (first["eventType"], last["eventType"]) == ("START", "COMPLETE")
    assert first["run"]["runId"] == last["run"]["runId"]
    assert (first["job"]["namespace"], first["job"]["name"]) == ("fairlead", "orders")
    assert receiver.keys == {f"Bearer {KEY}"}
    (read,), (written,) = last["inputs"], last["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "in"))
    assert (written["namespace"], written["name"]) == ("file", str(tmp_path / "out"))
    fields = {each["name"]: each["type"] for each in written["facets"]["schema"]["fields"]}
    assert fields == {"n": "bigint", "name": "string"}
    origin = written["facets"]["columnLineage"]["fields"]["n"]["inputFields"]
    assert [(each["name"], each["field"]) for each in origin] == [(read["name"], "id")]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert KEY not in json.dumps(receiver.events)


@pytest.mark.spark
def test_how_far_a_run_is_and_that_it_failed_is_told(
    config: dict[str, str],
    receiver: Receiver,
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lineage, "_EACH_S", 0.0)
    _, reports = start({**config, "task.restart.budget": "0"})
    batch(reports)
    (tmp_path / "in" / "b.csv").write_text("id,name\n4,w\n")
    reports.wait(lambda each: isinstance(each, BatchDone) and each.commit.commit_id.batch == 1)
    (tmp_path / "in" / "c.csv").write_text("id,name\nnever,w\n")
    reports.wait_status(state=RunState.FAILED)
    kinds = [each["eventType"] for each in receiver.events]
    assert kinds == ["START", "RUNNING", "FAIL"]
    rows = [
        each["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
        for each in receiver.events
    ]
    assert rows == [2, 3, 3]
    assert "c.csv" in receiver.events[-1]["run"]["facets"]["errorMessage"]["message"]


@pytest.mark.spark
def test_a_server_that_takes_nothing_keeps_no_row_waiting(
    config: dict[str, str], receiver: Receiver, start: Start
) -> None:
    receiver.status = 403
    runner, reports = start(config)
    batch(reports)
    runner.close(60)
    (told,) = [each for each in reports.told if isinstance(each, Warned)]
    assert told.text.startswith(f"openlineage.url: events cannot be sent to {receiver.url}")
    assert KEY not in told.text


@pytest.mark.parametrize("url", ["host:5000", "ftp://host"])
def test_what_is_no_url_is_refused(config: dict[str, str], url: str) -> None:
    errors = SparkPipeline.validate({**config, "openlineage.url": url}).errors
    assert list(errors) == ["openlineage.url"]


@pytest.mark.spark
def test_a_type_that_names_its_datasets_wrongly_loses_no_row(
    config: dict[str, str], receiver: Receiver, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FilesSinkType, "datasets", lambda *_: 1 / 0)
    runner, reports = start(config)
    batch(reports)
    runner.close(60)
    (told,) = [each for each in reports.told if isinstance(each, Warned)]
    assert told.text == "openlineage.url: no more events are sent for this run: division by zero"
    assert receiver.events == []
