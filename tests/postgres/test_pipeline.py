"""A real pipeline from one table to another, by a worker's tasks."""

import json
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import pytest

from fairlead.actors.timing import Backoff
from fairlead.events.model import ErrorClass, Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import Engine
from fairlead.runtime.pipeline.stores.files.source import reading
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.postgres import hang_detection
from fairlead.runtime.pipeline.tasks import restarts
from fairlead.runtime.pipeline.tasks.reports import StatusChanged, TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.postgres_pipes import sink_config, source_config
from fairlead_tests.postgres_server import Database, wait_until
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import LocalEngine, Reports

SHOP = """CREATE TABLE orders (id bigserial PRIMARY KEY, item text, price numeric(10,2),
    tags text[], made timestamptz DEFAULT now(), ref uuid DEFAULT gen_random_uuid())"""


def config_of(database: Database, **given: str) -> dict[str, str]:
    """Return a config from a table of the database to another one of it."""
    source = {"mode": "xmin", "table_include_list": r"public\.orders"}
    sink = {"table_name_format": "copy", "insert_mode": "upsert", "pk_mode": "record_value"}
    made = sink_config(database, **sink, pk_fields="id", auto_create="true")
    made = {key: each for key, each in made.items() if not key.startswith("source.")}
    begun = source_config(database, source)
    begun = {key: each for key, each in begun.items() if not key.startswith("sink.")}
    return {**begun, **made, "poll.interval.ms": "20", "linger.ms": "0", **given}


def start(runner: Runner, reports: Reports, config: Mapping[str, str], token: Token) -> None:
    runner.start(Launch(Resource("orders"), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    for task, told in enumerate(made.configs):
        runner.start(Launch(Resource("orders", task), token, config, told))


def last_of(reports: Reports, resource: Resource) -> StatusChanged:
    """Return the last status of a resource."""
    told = (each for each in reversed(reports.told) if isinstance(each, StatusChanged))
    return next(each for each in told if each.resource == resource)


def is_copied(database: Database, source: list[tuple[Any, ...]]) -> bool:
    (there,) = database.run("SELECT to_regclass('copy') IS NOT NULL")
    return there[0] and database.run("SELECT * FROM copy ORDER BY id") == source


def run(engine: Engine, database: Database, config: dict[str, str], wanted: LiteralString) -> None:
    """Copy a table, and what is changed in it meanwhile, under two tokens."""
    database.run(SHOP)
    database.run(
        "INSERT INTO orders (item, price, tags) SELECT 'i' || i, i / 4.0, ARRAY['a', NULL]"
        " FROM generate_series(1, 300) i"
    )
    ledger = MemoryLedger()
    for turn in (1, 2):
        reports = Reports()
        runner = Runner(engine, ledger, find_plugins(), reports)
        start(runner, reports, config, Token(turn, 0))
        with database.server.connected(database.name) as session:
            for item in ("new", "newer"):
                session.execute("INSERT INTO orders (item) VALUES (%s)", (f"{item} {turn}",))
                session.execute("UPDATE orders SET price = 7 WHERE id = %s", (turn,))
            source = session.execute(wanted).fetchall()
        try:
            wait_until(partial(is_copied, database, source))
        finally:
            assert runner.close(60) == frozenset()
    assert threading.active_count() < 30


FULL = """CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
    END $$;
    CREATE TRIGGER no_room BEFORE INSERT ON copy EXECUTE FUNCTION no_room()"""
"""What every insert meets while the server has no room, whoever writes."""

WAYS = {
    "table": {},
    "prepared": {"sink.stage.with": "prepared"},
    "at once": {"delivery.guarantee": "at-least-once"},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_table_is_copied_and_followed_without_spark(
    database: Database, way: Mapping[str, str]
) -> None:
    config = config_of(database, **{"batch.max.rows": "100", **way})
    wanted = "SELECT id, item, price, tags, made, ref::text FROM orders ORDER BY id"
    run(LocalEngine(), database, config, wanted)


def test_a_table_follows_another_by_the_log_through_deletes_and_a_truncate(
    database: Database,
) -> None:
    given = {"batch.max.rows": "100", "tasks.max": "2", "source.mode": "log"}
    given |= {"sink.delete.enabled": "true", "sink.truncate.enabled": "true"}
    config = config_of(database, **given)
    database.run(SHOP)
    database.run("INSERT INTO orders (item) SELECT 'i' || i FROM generate_series(1, 300) i")
    steps: tuple[LiteralString, ...] = (
        "UPDATE orders SET price = 7 WHERE id % 3 = 0",
        "DELETE FROM orders WHERE id % 5 = 0",
        "UPDATE orders SET id = -id WHERE id % 7 = 0",
        "TRUNCATE orders",
        "INSERT INTO orders (item) SELECT 'j' || i FROM generate_series(1, 250) i",
        "DELETE FROM orders WHERE item = 'j7'",
    )
    ledger, turns = MemoryLedger(), (steps[:3], steps[3:])
    for turn, each in enumerate(turns, 1):
        reports = Reports()
        runner = Runner(LocalEngine(), ledger, find_plugins(), reports)
        start(runner, reports, config, Token(turn, 0))
        with database.server.connected(database.name) as session:
            for step in each:
                session.execute(step)
            wanted = "SELECT id, item, price, tags, made, ref::text FROM orders ORDER BY id"
            source = session.execute(wanted).fetchall()
        try:
            wait_until(partial(is_copied, database, source))
        finally:
            assert runner.close(60) == frozenset()
    assert ledger.to_publish == []


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_row_that_the_table_refuses_becomes_a_dead_letter_and_no_other_comes_twice(
    database: Database, engine: Embedded, tmp_path: Path, way: Mapping[str, str]
) -> None:
    database.run(SHOP)
    database.run("INSERT INTO orders (item) SELECT 'i' || i FROM generate_series(1, 20) i")
    database.run("CREATE TABLE copy (id bigint, item text CHECK (item <> 'i13'))")
    config = config_of(
        database,
        **{
            "sink.insert.mode": "insert",
            "sink.pk.mode": "none",
            "sink.fields.whitelist": "id,item",
        },
        **{"errors.tolerance": "all", "errors.deadletterqueue.path": str(tmp_path / "bad")},
        **way,
    )
    del config["sink.pk.fields"]
    reports = Reports()
    runner = Runner(engine, MemoryLedger(), find_plugins(), reports)
    start(runner, reports, config, Token(1, 0))
    wanted = [(f"i{number}",) for number in range(1, 21) if number != 13]
    try:
        wait_until(
            lambda: (
                database.run("SELECT item FROM copy ORDER BY id") == wanted
                and len(list((tmp_path / "bad").glob("*.json"))) == 1
            )
        )
    finally:
        assert runner.close(60) == frozenset()
    (letters,) = (tmp_path / "bad").glob("*.json")
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert "i13" in letter["raw"]
    assert "check" in letter["reason"].lower()
    left = database.run("SELECT relname FROM pg_class WHERE relname LIKE 'fairlead\\_%\\_0\\_%'")
    assert (left, database.run("SELECT gid FROM pg_prepared_xacts")) == ([], [])


@pytest.mark.parametrize(
    "given",
    [*WAYS.values(), {"sink.dry.run": "false"}],
    ids=[*WAYS, "publication"],
)
def test_a_task_waits_for_a_server_whose_disk_is_full_and_goes_on_with_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str]
) -> None:
    monkeypatch.setattr(restarts, "_FULL_BACKOFF", Backoff(0.01, 0.05))
    database.run(SHOP)
    database.run("INSERT INTO orders (item) SELECT 'i' || i FROM generate_series(1, 20) i")
    database.run("CREATE TABLE copy (LIKE orders INCLUDING INDEXES)")
    database.run(FULL)
    reports = Reports()
    runner = Runner(LocalEngine(), MemoryLedger(), find_plugins(), reports)
    start(runner, reports, config_of(database, **given), Token(1, 0))
    try:
        waits = reports.wait_status("could not extend file: No space left on device")
        assert (waits.state, waits.error) == (RunState.RUNNING, ErrorClass.OUTSIDE)
        assert waits.reason.startswith("waiting for the sink: 127.0.0.1:")
        assert database.run("SELECT * FROM copy") == []
        database.run("DROP TRIGGER no_room ON copy")
        wait_until(lambda: is_copied(database, database.run("SELECT * FROM orders ORDER BY id")))
        goes = replace(waits, reason="", error=None)
        wait_until(lambda: last_of(reports, waits.resource) == goes)
    finally:
        assert runner.close(60) == frozenset()
    left = database.run("SELECT relname FROM pg_class WHERE relname LIKE 'fairlead\\_%\\_0\\_%'")
    assert (left, database.run("SELECT gid FROM pg_prepared_xacts")) == ([], [])


@pytest.mark.soak
def test_a_task_waits_for_a_server_that_hangs_and_goes_on_with_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hang_detection, "PATIENCE_S", 0.5)
    database.run(SHOP)
    database.run("INSERT INTO orders (item) VALUES ('first')")
    config = config_of(database)
    reports, stopped = Reports(), list[int]()
    runner = Runner(LocalEngine(), MemoryLedger(), find_plugins(), reports)
    start(runner, reports, config, Token(1, 0))
    wanted = "SELECT id, item, price, tags, made, ref::text FROM orders ORDER BY id"
    try:
        wait_until(lambda: is_copied(database, database.run(wanted)))
        of_sink = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'fairlead sink%'"
        stopped += [pid for (pid,) in database.run(of_sink)][:1]
        os.kill(stopped[0], signal.SIGSTOP)
        database.run("INSERT INTO orders (item) VALUES ('second')")
        waits = reports.wait_status(f"the server's process {stopped[0]} hangs, or is stopped")
        assert waits.state is RunState.RUNNING
        reports.wait_status("sessions of a former owner go on: pid ")
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: is_copied(database, database.run(wanted)))
    assert runner.close(60) == frozenset()


@pytest.mark.spark
def test_rows_pass_through_transforms_on_their_way(engine: Embedded, database: Database) -> None:
    config = config_of(
        database,
        **{
            "transforms": "x",
            "transforms.x.type": "sql",
            "transforms.x.query": "SELECT id, upper(item) AS item, price, tags, ref FROM input",
        },
    )
    wanted = "SELECT id, upper(item) AS item, price, tags, ref::text AS ref FROM orders ORDER BY id"
    run(engine, database, config, wanted)


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_proved_files_reach_a_table_without_a_reader_of_spark(
    database: Database,
    engine: Embedded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Mapping[str, str],
) -> None:
    monkeypatch.setattr(reading, "_LEAST_PARTED", 1)
    monkeypatch.setattr(ReadFormat, "rows", "no frame is to be made")
    for number in range(3):
        lines = [f"{each},i{each}" for each in range(number * 100, number * 100 + 100)]
        (tmp_path / f"{number}.csv").write_text("\n".join(["id,item", *lines, ""]))
    config = config_of(database, **way)
    config = {key: text for key, text in config.items() if not key.startswith("source.")}
    files = {"path": str(tmp_path), "format": "csv", "schema": "id BIGINT, item STRING"}
    config |= {f"source.{key}": text for key, text in files.items()}
    reports = Reports()
    runner = Runner(engine, MemoryLedger(), find_plugins(), reports)
    start(runner, reports, config, Token(1, 0))
    try:
        wait_until(partial(is_copied, database, [(each, f"i{each}") for each in range(300)]))
    finally:
        assert runner.close(60) == frozenset()
