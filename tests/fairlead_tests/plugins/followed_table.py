"""A table that is followed into another database, while all that can die does."""

import os
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import psutil
import psycopg

from fairlead_tests.plugins.connect_node import ConnectNode, until
from fairlead_tests.postgres_server import Database, PostgresServer

SEED = 7
HANDOVERS = int(os.environ.get("CHAOS_HANDOVERS", "20"))
FAULTS = ("kill host", "kill worker", "kill server", "freeze", "drain", "restart", "kill node")
ITEMS = (
    "CREATE TABLE items (id bigserial PRIMARY KEY, name text, price numeric(8, 2),"
    " at timestamptz DEFAULT now())"
)


class Writer:
    """Writes to a table all the time, until it is closed; its server may be away."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._over = Event()
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        turn = 0
        while not self._over.wait(0.1):
            turn += 1
            with suppress(psycopg.Error):
                self._database.run(
                    "INSERT INTO items (name, price)"
                    " SELECT 'n' || n, n FROM generate_series(1, 9) n"
                )
                self._database.run(
                    "UPDATE items SET name = %s WHERE id %% 7 = %s AND id < 500",
                    *(f"turn {turn}", turn % 7),
                )
                self._database.run("DELETE FROM items WHERE id %% 11 = %s", turn % 11)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


class Deaths:
    """The faults of the node and the server that one connector's task lives through."""

    def __init__(self, node: ConnectNode, server: PostgresServer, name: str) -> None:
        self._node, self._server, self._name = node, server, name
        self._dice = random.Random(SEED)

    def inject(self, fault: str) -> None:
        """Have a fault happen."""
        getattr(self, f"_{fault.replace(' ', '_')}")()

    def _holder(self) -> str:
        """Return the worker that has the task, once one has."""
        until(lambda: self._node.status(self._name).get("tasks"), "there is a task")
        return str(self._node.status(self._name)["tasks"][0]["worker_id"].rpartition("/")[2])

    def _kill_host(self) -> None:
        for host in self._node.hosts():
            host.kill()

    def _kill_worker(self) -> None:
        self._node.worker(self._holder()).kill()

    def _kill_server(self) -> None:
        self._server.kill()
        time.sleep(self._dice.uniform(0.2, 3))
        self._server.start()

    def _kill_node(self) -> None:
        self._node.crash()
        self._node.up()

    def _freeze(self) -> None:
        """Stop a worker and its host until another one has its task, and have both go on."""
        holder = self._holder()
        worker = self._node.worker(holder)
        frozen = [worker, *(each for each in self._node.hosts() if each.ppid() == worker.pid)]
        for each in frozen:
            each.suspend()
        try:
            until(lambda: self._holder() != holder, "another worker has its task")
            self._node.runs(self._name)
        finally:
            for each in frozen:
                with suppress(psutil.NoSuchProcess):
                    each.resume()

    def _drain(self) -> None:
        name = self._holder()
        until(lambda: self._node.rest.put(f"/workers/{name}/drain").is_success, f"{name} drains")
        until(lambda: self._holder() != name, f"{name} has nothing")
        until(lambda: self._node.rest.put(f"/workers/{name}/uncordon").is_success, "it is free")

    def _restart(self) -> None:
        path = f"/connectors/{self._name}/restart?includeTasks=true"
        assert self._node.rest.post(path).is_success


def rows(of: Database, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table; none before it is there."""
    if not of.run("SELECT 1 FROM pg_tables WHERE tablename = %s", table):
        return []
    statement = {
        "items": "SELECT id, name, price::float8, at AT TIME ZONE 'UTC' FROM items ORDER BY id",
        "copied": "SELECT id, name, price::float8, at::timestamp FROM copied ORDER BY id",
    }
    return of.run(statement[table])


def counts(node: ConnectNode, name: str) -> bool:
    """Return whether a connector has offsets, behind its first snapshot if it takes one."""
    offsets = node.rest.get(f"/connectors/{name}/offsets").json()["offsets"]
    found = [each["offset"] for each in offsets]
    return bool(found) and all(each.get("snapshot_completed", True) for each in found)


def live_through(
    node: ConnectNode, server: PostgresServer, name: str, config: Mapping[str, str]
) -> None:
    """Follow `items` of the database `origin` to `copied` of `target`, amid deaths."""
    origin, target = server.empty("origin"), server.empty("target")
    origin.run(ITEMS)
    node.create(name, config)
    deaths, order = Deaths(node, server, name), random.Random(SEED)

    def has_moved() -> Callable[[], bool]:
        before = rows(target, "copied")[-1:]
        return lambda: rows(target, "copied")[-1:] != before

    writer = Writer(origin)
    try:
        # A snapshot that begins anew would not see what was deleted meanwhile.
        until(lambda: counts(node, name), "the first rows count")
        for number in range(HANDOVERS):
            until(has_moved(), "rows arrive")
            fault = FAULTS[number] if number < len(FAULTS) else order.choice(FAULTS)
            print(number, fault, flush=True)
            deaths.inject(fault)
        until(has_moved(), "rows arrive after the last death")
    finally:
        writer.close()
    until(lambda: rows(target, "copied") == rows(origin, "items"), "both have the same rows")
    node.delete(name)
