"""The command line in this process, and a small HTTP server that answers as a cluster would."""

import json
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import ValidationError, convert, to_builtins

from fairlead.runtime.cluster.identity import HEADER
from fairlead.runtime.interfaces.cli.main import main
from fairlead.runtime.interfaces.replies.connectors import ConnectorStateInfo
from fairlead.runtime.interfaces.replies.node import Health
from fairlead.runtime.interfaces.replies.overview import count_troubles, judge, with_troubles
from fairlead_tests.cli import answered, written


class Ended(NamedTuple):
    """How a command ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run commands in an empty folder of their own, as if in a terminal of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.chdir(tmp_path)

    def ran(*arguments: str | Path) -> Ended:
        code = main([str(each) for each in arguments])
        told = capsys.readouterr()
        return Ended(code, told.out, told.err)

    return ran


def in_each_pause(monkeypatch: pytest.MonkeyPatch, do: Callable[[float], object]) -> None:
    """Do something in place of each pause of a command; what other threads do sleeps as ever.

    Some thread that an earlier test has left may sleep at any moment.
    """
    sleep = time.sleep

    def pause(seconds: float) -> None:
        is_command = threading.current_thread() is threading.main_thread()
        (do if is_command else sleep)(seconds)

    monkeypatch.setattr("time.sleep", pause)


class Asked(NamedTuple):
    """A request that the server had."""

    method: str
    path: str
    body: object


@dataclass
class Cluster:
    """A server and what it answers: by method and path, a status and a document."""

    url: str = ""
    answers: dict[tuple[str, str], tuple[int, object]] = field(
        default_factory=dict[tuple[str, str], tuple[int, object]]
    )
    asked: list[Asked] = field(default_factory=list[Asked])
    statuses: list[int] = field(default_factory=list[int])
    """That of each answer."""
    node: str = ""
    """Whose answers they are, by its own word."""
    authorizations: list[str | None] = field(default_factory=list[str | None])
    """The header of each request that says who asks."""

    def answer(self, method: str, path: str, found: object, status: int = 200) -> None:
        self.answers[method, path] = (status, found)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with one connector at work, another one that failed, and two workers."""
    told = Cluster()
    for path, found in answered.ANSWERS.items():
        told.answer("GET", path, found)
    with serving(told):
        yield told


@contextmanager
def serving(told: Cluster) -> Generator[None]:
    """Have a server give the answers of a cluster in the context."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(told))
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield
    server.shutdown()
    thread.join()
    server.server_close()


EXPANDED = "/connectors?expand=status&expand=info&expand=progress"


FOLDER = "folder"
"""No path: what the overview says of the folder of connector files."""


def overview_of(cluster: Cluster) -> tuple[int, object]:
    """What the cluster answers to one request for all: its answers about each, or one's error."""
    parts = {"server": "/", "health": "/health", "groups": "/groups", "workers": "/workers"}
    told: dict[str, Any] = {}
    for part, path in {**parts, "connectors": EXPANDED}.items():
        status, told[part] = cluster.answers.get(("GET", path), (404, {}))
        if status >= 400 and part != "health":
            return status, told[part]
    if ("GET", FOLDER) in cluster.answers:
        told["folder"] = cluster.answers["GET", FOLDER][1]
    if ("GET", "/nodes") in cluster.answers:
        told["nodes"] = cluster.answers["GET", "/nodes"][1]
    try:
        return 200, {**told, **judged(told)}
    except (AttributeError, KeyError, TypeError, ValidationError):  # an answer is misshapen
        return 200, told


def judged(told: Mapping[str, Any]) -> dict[str, object]:
    """The health and the verdict of an overview, as the interface judges its parts."""
    entries = [each["status"] for each in told["connectors"].values() if "status" in each]
    processes = [each["process"]["state"] for each in told["workers"]["workers"] if each["process"]]
    engine: dict[str, str] = told["workers"].get("engine") or {}
    troubles = count_troubles(
        convert(entries, list[ConnectorStateInfo]), processes, engine.get("state", "")
    )
    health = with_troubles(convert(told["health"], Health), troubles)
    return {"health": to_builtins(health), "verdict": to_builtins(judge(health, troubles))}


def handler_of(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.replace("extended=true&", "").replace("?extended=true", "")
            cluster.authorizations.append(self.headers.get("Authorization"))
            cluster.asked.append(Asked(self.command, path, json.loads(body or b"null")))
            missing = {"error_code": 404, "message": f"there is no {path}"}
            if (self.command, path) == ("GET", "/status"):
                status, found = overview_of(cluster)
            else:
                status, found = cluster.answers.get((self.command, path), (404, missing))
            told = found if isinstance(found, bytes) else json.dumps(found).encode()
            tag = f'W/"{hash(told):x}"'
            if self.headers.get("If-None-Match") == tag:
                status = 304
            cluster.statuses.append(status)
            self.send_response(status)
            self.send_header("Content-Length", str(0 if status in {204, 304} else len(told)))
            self.send_header(HEADER, cluster.node)
            if path.startswith("/connectors?"):
                self.send_header("ETag", tag)
            self.end_headers()
            if status not in {204, 304}:
                self.wfile.write(told)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815  # the names of http.server

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder with both logs of the group `connect`."""
    written.write_both(tmp_path / "data")
    return tmp_path / "data"
