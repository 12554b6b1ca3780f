# pyright: basic
"""A node whose state is drawn by a seed: as many connectors and events as a test asks for."""

import asyncio
import json
import random
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fairlead.runtime.interfaces.replies.live.state import ConnectorRow, PageVerdict
from fairlead.runtime.interfaces.rest.reading.encoded import EncodedBody
from fairlead.runtime.interfaces.rest.routes.page.files import (
    answer_page,
    describe_page,
    get_page_file,
)

HOUR_MS = 3_600_000
STORES = ("postgres", "kafka", "files", "jdbc")
RIGHTS = ["view", "operate", "administer"]
EPOCHS = (
    ("worker-drained", "w7: worker drained", "8 moved, down 0.06 s · by anna", 8, 0, [20, 8, 72]),
    ("tasks-changed", "orders-to-lake: tasks 4 > 6", "2 started", 0, 0, [0, 62, 38]),
    ("member-joined", "w5: member joined", "9 back at w5, down 0.31 s", 9, 0, [55, 15, 30]),
    ("process-ended", "w5: process ended", "9 wait", 0, 9, [2, 98, 0]),
    ("config-changed", "clicks: config changed, tasks.max", "by ben", 0, 0, [0, 100, 0]),
)
"""Cause, title, text, how much moved and waited, and the parts of the time."""


class DrawnNode:
    """The state of a node and what happens in it; the clock is that of this machine."""

    def __init__(
        self,
        connectors: int,
        tasks: int,
        workers: int,
        seed: int = 1,
        names: Sequence[str] = (),
    ) -> None:
        self.random = random.Random(seed)
        self.number = 0
        self.events: list[tuple[str, str]] = []
        self.hours: dict[str, dict[str, list[float]]] = {}
        """The last hour of each connector."""
        now = _now()
        names = names or [f"pipeline-{number:04}" for number in range(connectors)]
        self.state: dict[str, Any] = {
            "version": "0.1.0",
            "group": "connect",
            "cluster_id": "drawn",
            "position": 1,
            "sequence": 0,
            "time_ms": now,
            "began_ms": now - HOUR_MS,
            "step_ms": 15_000,
            "epoch": 412,
            "assignment_epoch": 412,
            "group_state": "Stable",
            "assignor": "balanced",
            "workers": [
                self._worker(f"w{n + 1}", tasks * connectors // workers) for n in range(workers)
            ],
            "connectors": {
                name: self._connector(name, number, tasks, workers)
                for number, name in enumerate(names)
            },
            "epochs": [self._epoch(412 - n, now - n * 41_000) for n in range(50)],
            "lines": [],
        }
        self._judge()

    def _worker(self, name: str, tasks: int) -> dict[str, Any]:
        draw = self.random
        return {
            "name": name,
            "member_id": f"{name}-id",
            "host": f"node-{draw.randint(1, 3)}",
            "state": "running",
            "order": "",
            "tasks": tasks,
            "cpu": draw.random(),
            "memory_bytes": draw.randint(50, 90) * 1_000_000,
            "heartbeat_age_ms": 1_200,
            "restarts": draw.choice([0, 0, 0, 1]),
            "since_ms": _now() - HOUR_MS,
            "detail": "",
            "history": {
                "cpu": self._curve(40, 240),
                "memory_bytes": [60e6] * 240,
                "heartbeat_age_ms": [700 * n % 3_000 for n in range(240)],
            },
        }

    def _connector(self, name: str, number: int, tasks: int, workers: int) -> dict[str, Any]:
        draw = self.random
        shape = (
            "bad"
            if number % 71 == 3
            else "wait"
            if number % 53 == 7
            else "off"
            if number % 29 == 11
            else "ok"
        )
        letter = {"bad": "f", "wait": "w", "off": "p", "ok": "k"}[shape]
        cells = letter * tasks if shape != "bad" else ("ff" + "k" * tasks)[:tasks]
        source, sink = draw.choice(STORES), draw.choice(STORES[:3])
        level = draw.randint(100, 9_000)
        self.hours[name] = {"rows_per_second": self._curve(level, 60)}
        return {
            "kind": "source",
            "from": source,
            "to": sink,
            "class": "SparkPipeline",
            "state": "PAUSED" if shape == "off" else "RUNNING",
            "shape": shape,
            "reason": "input: column amount of public.orders became text" if shape == "bad" else "",
            "since_ms": _now() - 41 * 60_000 if shape == "bad" else _now() - 9 * 60_000,
            "cells": cells,
            "on": [(number * tasks + n) % workers for n in range(tasks)],
            "tasks_max": tasks,
            "rows_per_second": level if shape == "ok" else 0.0,
            "rows": level * 3_600,
            "dead_letters": 0,
            "lag": {"records": draw.randint(0, 900), "bytes": 0, "ranges": 0},
            "behind_ms": 41 * 60_000 if shape == "bad" else 300,
            "last_commit_ms": _now() - (41 * 60_000 if shape == "bad" else 900),
            "labels": {},
            "changed_by": "anna",
            "changed_ms": _now() - HOUR_MS,
        }

    def _curve(self, level: int, length: int) -> list[float]:
        """Draw a curve that wanders about a level."""
        values = [float(level)]
        while len(values) < length:
            drift = self.random.gauss(0, level / 25) + (level - values[-1]) / 12
            values.append(max(0.0, round(values[-1] + drift)))
        return values

    def _epoch(self, epoch: int, at: int) -> dict[str, Any]:
        cause, title, text, moved, parked, bar = EPOCHS[epoch % len(EPOCHS)]
        return {
            "epoch": epoch,
            "time_ms": at,
            "cause": cause,
            "subject": title.partition(":")[0],
            "actor": None,
            "title": title,
            "text": text,
            "moved": moved,
            "placed": 0,
            "parked": parked,
            "took_ms": 4,
            "down_ms": 60,
            "down_sum_ms": moved * self.random.randint(40, 90),
            "bar": bar,
        }

    def _judge(self) -> None:
        rows = self.state["connectors"]
        wrong = {name: each for name, each in rows.items() if each["shape"] in {"bad", "wait"}}
        self.state["verdict"] = {
            "status": "degraded" if wrong else "healthy",
            "title": f"{len(wrong)} of {len(rows)} connectors need you"
            if wrong
            else f"All {len(rows)} connectors are fine",
            "text": f"{len(rows) - len(wrong)} are fine. Nothing has been lost: what is behind"
            " will be read when its cause is gone.",
        }
        self.state["troubles"] = [
            {
                "id": f"failed:{name}",
                "kind": "failed" if each["shape"] == "bad" else "waiting",
                "connector": name,
                "tasks": [0, 1],
                "worker": None,
                "title": "2 of 6 tasks failed"
                if each["shape"] == "bad"
                else "waits for the broker",
                "text": "Column amount of public.orders became text at 14:59:03."
                if each["shape"] == "bad"
                else "broker-2:9092 does not answer.",
                "saved": "Rows before it are in the sink, rows behind it wait in the source.",
                "error_class": "input",
                "since_ms": each["since_ms"],
                "actions": ["restart"] if each["shape"] == "bad" else [],
                "trace": True,
            }
            for name, each in sorted(
                wrong.items(), key=lambda one: (one[1]["shape"] != "bad", one[0])
            )
        ]
        self.state["figures"] = {
            "rows_per_second": sum(each["rows_per_second"] for each in rows.values()),
            "rows_today": 1_400_000_000,
            "behind_ms": 41 * 60_000 if wrong else None,
            "behind_connector": min(wrong, default=None),
            "last_rebalance": {
                "epoch": self.state["epoch"],
                "moved": 1,
                "tasks": sum(len(each["cells"]) for each in rows.values()),
                "down_ms": 60,
            },
            "workers": len(self.state["workers"]),
            "workers_wanted": len(self.state["workers"]),
            "memory_bytes": 4_100_000_000,
            "memory_total_bytes": 24_000_000_000,
            "engine": "warm",
            "history": {
                "rows_per_second": self._curve(40_000, 240),
                "behind_ms": self._curve(2_000, 240),
            },
        }

    def happen(self) -> None:
        """Have a connector commit."""
        name = self.random.choice(list(self.state["connectors"]))
        row = dict(self.state["connectors"][name])
        row["rows_per_second"] = max(0, row["rows_per_second"] + self.random.randint(-50, 50))
        row["last_commit_ms"] = _now()
        self.tell({"connectors": {name: row}})

    def tell(self, change: dict[str, Any]) -> None:
        """Tell all streams of a change, and keep it."""
        self.number += 1
        self.state["sequence"] = self.number
        self.state["time_ms"] = _now()
        self.state["connectors"] |= change.get("connectors", {})
        message = {"sequence": self.state["sequence"], "time_ms": self.state["time_ms"], **change}
        self.events.append((f"1-{self.number}", json.dumps(message)))

    def app(self, per_second: float = 0.0) -> Starlette:
        """Return the node's application; so many changes a second happen by themselves."""
        if per_second:
            threading.Thread(target=self._run, args=(1 / per_second,), daemon=True).start()
        anything = ["GET", "POST", "PUT", "DELETE"]
        return Starlette(
            routes=[
                Route("/", self._show_page),
                Route("/state", self._show_state),
                Route("/state/history", self._show_hours),
                Route("/events", self._stream),
                Route("/whoami", self._show_caller),
                Route("/connectors/{name}/history", self._show_hour),
                Route("/ui/{file:path}", _show_file),
                Route("/{rest:path}", _refuse, methods=anything),
            ]
        )

    def _run(self, pause: float) -> None:
        while True:
            time.sleep(pause)
            self.happen()

    def _show_page(self, _: Request) -> Response:
        rows = msgspec.convert(self.state["connectors"], dict[str, ConnectorRow])
        verdict = msgspec.convert(self.state["verdict"], PageVerdict)
        return answer_page(describe_page(verdict, rows))

    def _show_state(self, request: Request) -> Response:
        return EncodedBody(msgspec.json.encode(self.state)).answer(request)

    def _show_hours(self, request: Request) -> Response:
        hours = {"sequence": self.number, "connectors": self.hours}
        return EncodedBody(msgspec.json.encode(hours)).answer(request)

    async def _show_caller(self, _: Request) -> JSONResponse:
        return JSONResponse({"name": "ann", "grants": [{"rights": RIGHTS, "connectors": []}]})

    async def _show_hour(self, request: Request) -> JSONResponse:
        curves, now = self.hours[request.path_params["name"]], _now()
        times = [now - 60_000 * (60 - n) for n in range(60)]
        hour = {"began_ms": now - HOUR_MS, "step_ms": 60_000, "time_ms": times, "marks": []}
        return JSONResponse({**hour, **curves, "behind_ms": [300] * 60})

    async def _stream(self, request: Request) -> StreamingResponse:
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[str]:
        last = request.headers.get("last-event-id", "").rpartition("-")[2]
        at = int(last) if last else len(self.events)
        yield f'event: open\ndata: {{"sequence": {at}}}\n\n'
        while not await request.is_disconnected():
            new = self.events[at:]
            at += len(new)
            if new:
                yield "".join(f"id: {each}\nevent: change\ndata: {text}\n\n" for each, text in new)
            await asyncio.sleep(0.01)


def _show_file(request: Request) -> Response:
    return get_page_file(request.path_params["file"], request)


async def _refuse(_: Request) -> JSONResponse:
    return JSONResponse({"error_code": 404, "message": "not drawn"}, 404)


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve an application on a thread; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="critical", timeout_graceful_shutdown=0)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join(5)


def _now() -> int:
    return time.time_ns() // 1_000_000
