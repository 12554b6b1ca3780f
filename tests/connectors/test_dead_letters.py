# pyright: basic
"""Bad rows become dead letters, each once, with its reason and its place; or they are told."""

import json
import threading
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.config.references.redaction import Redaction
from fairlead.runtime.pipeline.batches.batch import Batch, Target
from fairlead.runtime.pipeline.connectors.dead_letter_queue import flaws_in_queue
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline, Tolerance
from fairlead.runtime.pipeline.spi.context import Context, ExternalAccess
from fairlead.runtime.pipeline.spi.errors import RowsRefused
from fairlead.runtime.pipeline.spi.rows import DeadLetter, LetterQuery
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.tasks.plugins.calls import LeftBehind
from fairlead.runtime.pipeline.tasks.task import Task, TaskHost
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

pytestmark = pytest.mark.spark

Config = dict[str, str]
TOPIC = "errors.deadletterqueue.topic.name"


@pytest.fixture
def config(folders: Config, tmp_path: Path) -> Config:
    """A config that keeps bad rows."""
    return {
        **folders,
        "source.format": "csv",
        "source.schema": "n INT, s STRING",
        "sink.format": "json",
        "errors.tolerance": "all",
        "errors.deadletterqueue.path": str(tmp_path / "bad"),
    }


def rows(folder: Path) -> list[dict[str, Any]]:
    files = [each for each in folder.rglob("part-*.json") if "_fairlead" not in each.parts]
    found = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    return sorted(found, key=repr)


def letters(tmp_path: Path) -> list[tuple[str, str, str | None]]:
    """Return of each dead letter the file's name, the reason and the text."""
    found = rows(tmp_path / "bad")
    assert all({each["connector"], each["task"]} == {"c", 0} and each["time"] for each in found)
    return sorted(
        (Path(each["position"]["file"]).name, each["reason"], each.get("raw")) for each in found
    )


def failures(reports: Reports) -> list[str]:
    return [each.trace or each.reason for each in reports.statuses if each.state.value == "FAILED"]


def test_each_bad_row_is_kept_once_with_its_file_its_reason_and_its_text(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a +b.csv").write_text('n,s\n1,x\nfoo,"y\nz"\n2,3,4\n5\n6,"a""b"\n')
    (tmp_path / "in" / "c.csv").write_text("n,s\r\n7,ok\r\nbar,ä\r\n")
    reports = run(config)
    assert failures(reports) == []
    assert [each["n"] for each in rows(tmp_path / "out")] == [1, 6, 7]
    assert letters(tmp_path) == [
        ("a +b.csv", 'column `n` (INT): For input string: "foo"', 'foo,"y\nz"'),
        ("a +b.csv", "does not have 2 values", "2,3,4"),
        ("a +b.csv", "does not have 2 values", "5"),
        ("c.csv", 'column `n` (INT): For input string: "bar"', "bar,ä"),
    ]
    commits = list(ledger.accepted.values())
    assert (sum(each.rows_in for each in commits), sum(each.skipped for each in commits)) == (7, 4)
    told = [each.reason for each in reports.statuses if "bad" in each.reason]
    assert f"they are in {tmp_path}/bad" in told[-1]


def test_dead_letters_can_be_listed_and_are_the_source_of_a_connector_that_mends_them(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text('n,s\n1,x\n2 pieces,"y,z"\n')
    assert failures(run(config)) == []
    page = SparkPipeline.read_letters(config, ExternalAccess(), LetterQuery(50))
    letter = page.letters[0]._replace(time_ms=0)
    reason = 'column `n` (INT): For input string: "2 pieces"'
    place = f"file {tmp_path}/in/a.csv"
    assert letter == DeadLetter(0, reason, "source", place, '2 pieces,"y,z"', 0, 0)
    assert page[1:] == (None, f"the folder {tmp_path}/bad")
    ledger.logged.clear()
    mended = "from_csv(replace(raw, ' pieces', ''), 'n INT, s STRING')"
    again = {
        **config,
        "source.path": f"{tmp_path}/bad",
        "source.format": "json",
        "source.schema": "raw STRING",
        "transforms": "mend",
        "transforms.mend.type": "sql",
        "transforms.mend.query": f"SELECT m.* FROM (SELECT {mended} AS m FROM input)",
        "sink.path": f"{tmp_path}/again",
        "errors.deadletterqueue.path": f"{tmp_path}/worse",
    }
    assert failures(run(again)) == []
    assert rows(tmp_path / "again") == [{"n": 2, "s": "y,z"}]


def test_a_row_of_too_few_values_is_bad_alone_in_a_file_that_brings_a_column(
    run: Run, config: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text('n,new,s\n1,2,x\n3\n4,,""\n')
    reports = run({**config, "source.schema.evolution": "add-columns"})
    assert failures(reports) == []
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x", "new": 2}, {"n": 4, "s": ""}]
    assert letters(tmp_path) == [("a.csv", "does not have 3 values", "3")]


def test_a_batch_of_nothing_but_bad_rows_leaves_its_letters_and_no_file(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,s\nfoo,x\n")
    assert failures(run(config)) == []
    assert rows(tmp_path / "out") == []
    assert letters(tmp_path) == [("a.csv", 'column `n` (INT): For input string: "foo"', "foo,x")]
    assert ledger.to_publish == []


def test_values_of_several_nulls_and_other_encodings_are_kept_as_they_were_written(
    run: Run, config: Config, tmp_path: Path
) -> None:
    text = 'n,s\n1,NA\nfoo,"a,""b"""\nNA,\\N\n"",é\n'
    (tmp_path / "in" / "a.csv").write_bytes(text.encode("latin-1"))
    config |= {"source.null.values": "NA,\\N", "source.encoding": "latin-1"}
    assert failures(run(config)) == []
    assert rows(tmp_path / "out") == [{"n": 1}, {"s": "é"}, {}]
    told = 'column `n` (INT): For input string: "foo"'
    assert letters(tmp_path) == [("a.csv", told, 'foo,"a,""b"""')]


def test_lines_of_json_that_do_not_fit_are_kept_though_no_transform_looks_at_them(
    run: Run, config: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.json").write_text('{"n":1,"s":"x"}\n{"n":"foo","s":"y"}\nnone\n{"n":2}\n')
    config |= {"source.format": "json", "errors.deadletterqueue.context.headers.enable": "true"}
    config |= {"transforms": "t", "transforms.t.type": "select", "transforms.t.columns": "s"}
    assert failures(run(config)) == []
    assert rows(tmp_path / "out") == [{"s": "x"}, {}]
    assert letters(tmp_path) == [
        ("a.json", 'column `n` (INT): For input string: "foo"', '{"n":"foo","s":"y"}'),
        ("a.json", "is not a JSON object", "none"),
    ]
    assert rows(tmp_path / "bad")[0]["headers"]["__connect.errors.stage"] == "VALUE_CONVERTER"


def test_a_number_of_json_that_is_too_large_for_a_tinyint_is_a_bad_value(
    run: Run, config: Config, tmp_path: Path
) -> None:
    lines = '{"n":127,"s":"x"}\n{"n":200,"s":"y"}\n{"n":-129,"s":"z"}\n{"s":"w"}\n'
    (tmp_path / "in" / "a.json").write_text(lines)
    config |= {"source.format": "json", "source.schema": "n TINYINT, s STRING"}
    strict = {"errors.tolerance": "none", "task.restart.budget": "0"}
    told = failures(run({**config, **strict, "sink.path": f"{tmp_path}/new"}))[0]
    assert 'a.json: column `n` (TINYINT): For input string: "200"' in told
    assert failures(run(config)) == []
    assert rows(tmp_path / "out") == [{"n": 127, "s": "x"}, {"s": "w"}]
    assert letters(tmp_path) == [
        ("a.json", 'column `n` (TINYINT): For input string: "-129"', '{"n":-129,"s":"z"}'),
        ("a.json", 'column `n` (TINYINT): For input string: "200"', '{"n":200,"s":"y"}'),
    ]


@pytest.mark.parametrize(("kind", "least"), [("TINYINT", 128), ("SMALLINT", 32_768)])
def test_a_number_of_parquet_that_is_too_large_for_its_column_makes_its_file_a_bad_one(
    run: Run, config: Config, tmp_path: Path, kind: str, least: int
) -> None:
    good: list[int | None] = [least - 1, None, -least]
    for name, numbers in (("good", good), ("wide", [1, least])):
        table = pa.table({"n": pa.array(numbers, pa.int32()), "s": ["x"] * len(numbers)})
        papq.write_table(table, tmp_path / "in" / name)
    papq.write_table(pa.table({"n": pa.array([5], pa.int8()), "s": ["y"]}), tmp_path / "in" / "own")
    config |= {"source.format": "parquet", "source.schema": f"n {kind}, s STRING"}
    assert failures(run(config)) == []
    found = [each.get("n") for each in rows(tmp_path / "out")]
    assert sorted(found, key=repr) == sorted([*good, 5], key=repr)
    assert [(name, why) for name, why, _ in letters(tmp_path)] == [
        ("wide", f'column `n` ({kind}): For input string: "{least}"')
    ]


def test_a_file_that_cannot_be_read_keeps_no_good_one_waiting(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    table = pa.table({"n": pa.array([1, 2], pa.int32()), "s": ["x", "y"]})
    papq.write_table(table, tmp_path / "in" / "good.parquet")
    (tmp_path / "in" / "none.parquet").write_text("no parquet")
    whole = (tmp_path / "in" / "good.parquet").read_bytes()
    # Its footer can be read, and its pages cannot.
    (tmp_path / "in" / "torn.parquet").write_bytes(whole[:4] + bytes(60) + whole[64:])
    assert failures(run({**config, "source.format": "parquet"})) == []
    assert [each["n"] for each in rows(tmp_path / "out")] == [1, 2]
    assert [(name, raw) for name, _, raw in letters(tmp_path)] == [
        ("none.parquet", None),
        ("torn.parquet", None),
    ]
    assert len(ledger.offsets("c")) == 3


def test_rows_that_are_dropped_are_counted_and_told(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,s\n1,x\nfoo,y\n")
    del config["errors.deadletterqueue.path"]
    reports = run(config)
    assert [each["n"] for each in rows(tmp_path / "out")] == [1]
    (commit,) = ledger.accepted.values()
    assert (commit.skipped, commit.manifest.dead_letters) == (1, None)
    assert any("dropped" in each.reason for each in reports.statuses)


def test_too_many_bad_rows_end_the_task_and_nothing_counts(
    run: Run, config: Config, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,s\n1,x\nfoo,y\n2,z\n3,z\n")
    (told,) = failures(run({**config, "errors.max.ratio": "0.2"}))
    file = f"{tmp_path}/in/a.csv"
    assert told.startswith(
        f"{file}, in a batch of its own: 1 of the 4 rows of a batch are bad, more than "
        "errors.max.ratio=0.2 allows: nothing of the batch counts. One of them: source, "
        f"{file}: column `n` (INT): For input"
    )
    assert (ledger.accepted, rows(tmp_path / "out"), rows(tmp_path / "bad")) == ({}, [], [])


class Crash(LeftBehind):
    """Stands for the end of the process at some point of a batch: nothing catches it."""


def crash_at(point: str, config: Config, patched: pytest.MonkeyPatch) -> None:
    """End the process after a step that writes to one of the folders."""
    name, where = {
        "letters staged": ("stage", "errors.deadletterqueue.path"),
        "letters published": ("publish", "errors.deadletterqueue.path"),
        "rows published": ("publish", "sink.path"),
    }[point]
    done = getattr(FileSink, name)

    def run(sink: FileSink, *given: object) -> object:
        result = done(sink, *given)
        if str(sink._place.root) == config[where]:
            raise Crash
        return result

    patched.setattr(FileSink, name, run)


def run_until_published(successor: Task, ledger: MemoryLedger) -> None:
    pause = threading.Event()

    def drain() -> None:
        while ledger.to_publish or not ledger.accepted:
            pause.wait(0.02)
        successor.halt.drain()

    thread = threading.Thread(target=drain)
    thread.start()
    successor.run()
    thread.join()


@pytest.mark.parametrize("point", ["letters staged", "letters published", "rows published"])
def test_a_crash_between_any_two_steps_loses_and_doubles_no_dead_letter(
    point: str, config: Config, engine: Embedded, ledger: MemoryLedger, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n,s\n1,x\nfoo,y\n")
    connector = SparkPipeline()
    connector.start(Context(Resource("c"), print, cluster_id=ledger.cluster_id), config)
    (told,) = connector.task_configs(1)

    def task(epoch: int) -> Task:
        launch = Launch(Resource("c", 0), Token(epoch, 0), config, told)
        ledger.grant(launch.resource, launch.token)
        pipeline = partial(SparkPipeline().pipeline, task_config=told)
        return Task(launch, pipeline, TaskHost(engine, ledger, Reports()))

    with pytest.MonkeyPatch.context() as patched:
        crash_at(point, config, patched)
        with pytest.raises(Crash):
            task(1).run()
    run_until_published(task(2), ledger)
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x"}]
    assert [raw for *_, raw in letters(tmp_path)] == ["foo,y"]
    assert not list(tmp_path.glob("*/_fairlead/staging/*"))


def test_rows_that_violate_a_rule_are_kept_where_that_is_asked_for(
    run: Run, config: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a+ %.csv").write_text("n,s\n1,x\n-1,y\nfoo,z\n")
    config |= {"transforms": "q", "transforms.q.type": "expect"}
    config |= {
        "transforms.q.expect.positive": "n > 0",
        "transforms.q.on.violation": "dead-letter",
    }
    assert failures(run(config)) == []
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x"}]
    assert letters(tmp_path) == [
        ("a+ %.csv", 'column `n` (INT): For input string: "foo"', "foo,z"),
        ("a+ %.csv", "violates positive (n > 0)", '{"n":-1,"s":"y"}'),
    ]


@pytest.mark.parametrize(
    ("more", "key", "flaw"),
    [
        ({"errors.deadletterqueue.path": "/in/x"}, "errors.deadletterqueue.path", "lies in source"),
        ({TOPIC: "t"}, TOPIC, "set errors.deadletterqueue.bootstrap.servers as well"),
        ({TOPIC: "t", "errors.deadletterqueue.path": "/bad"}, TOPIC, "give either it or"),
        ({"errors.max.ratio": "2"}, "errors.max.ratio", "from 0 to 1"),
        (
            {"transforms": "q", "transforms.q.type": "expect", "transforms.q.expect.a": "n > 0"}
            | {"transforms.q.on.violation": "dead-letter"},
            "transforms.q.on.violation",
            "errors.deadletterqueue.path",
        ),
    ],
)
def test_what_dead_letters_cannot_be_is_refused(more: Config, key: str, flaw: str) -> None:
    config = {"name": "c", "connector.class": "SparkPipeline", "source.format": "csv"}
    config |= {"source.path": "/in", "sink.path": "/out", "sink.format": "json", **more}
    errors = SparkPipeline.validate(config).errors
    assert list(errors) == [key]
    assert flaw in errors[key][0]


def test_rows_that_a_query_fails_for_become_dead_letters_and_the_others_arrive(
    run: Run, config: Config, tmp_path: Path
) -> None:
    config["transforms"], config["transforms.t.type"] = "t", "sql"
    config["transforms.t.query"] = "SELECT n, 10 / n AS ratio, CAST(s AS DATE) AS day FROM input"
    lines = "".join(f"{n},2026-01-{n:02}\n" for n in range(1, 20))
    (tmp_path / "in" / "a+ %.csv").write_text(f"n,s\n{lines}0,2026-02-01\n20,never\n")
    reports = run(config)
    assert failures(reports) == []
    assert sorted(each["n"] for each in rows(tmp_path / "out")) == list(range(1, 20))
    bad = {each["raw"]: (each["stage"], each["reason"]) for each in rows(tmp_path / "bad")}
    zero, never = ('{"n": 0, "s": "2026-02-01"}', '{"n": 20, "s": "never"}')
    assert {raw: stage for raw, (stage, _) in bad.items()} == dict.fromkeys(
        (zero, never), "transform"
    )
    places = {each["raw"]: each["position"] for each in rows(tmp_path / "bad")}
    file = str(tmp_path / "in" / "a+ %.csv")
    assert places == {
        zero: {"file": file, "row": "20 of the batch"},
        never: {"file": file, "row": "21 of the batch"},
    }
    assert "DIVIDE_BY_ZERO" in bad[zero][1]
    assert "CAST_INVALID_INPUT" in bad[never][1]


def test_a_row_that_a_query_fails_for_has_its_file_among_files_with_other_columns(
    run: Run, config: Config, tmp_path: Path
) -> None:
    for name, text in {"a": "n,s\n1,x\n0,y\n", "b": "s,n,t\nz,0,z\n", "c": "n\n2\n0\n"}.items():
        (tmp_path / "in" / name).write_text(text)
    del config["source.schema"]
    config |= {"source.schema.evolution": "add-columns", "transforms": "t"}
    config |= {"transforms.t.type": "sql", "transforms.t.query": "SELECT 10 / n AS r FROM input"}
    assert failures(run(config)) == []
    assert [each["r"] for each in rows(tmp_path / "out")] == [10, 5]
    assert [name for name, _, _ in letters(tmp_path)] == ["a", "b", "c"]
    found = {Path(name).name: json.loads(str(raw))["s"] for name, _, raw in letters(tmp_path)}
    assert found == {"a": "y", "b": "z", "c": None}


def test_no_reason_of_a_dead_letter_holds_a_secret_of_the_query(
    run: Run, config: Config, tmp_path: Path, redaction: Redaction
) -> None:
    redaction.learn({"hunter2-hunter2": "${file:/f:k}"})
    config["transforms"], config["transforms.t.type"] = "t", "sql"
    config["transforms.t.query"] = "SELECT CAST(s || 'hunter2-hunter2' AS DATE) AS day FROM input"
    (tmp_path / "in" / "a.csv").write_text("n,s\n1,a\n")
    assert failures(run(config)) == []
    (letter,) = rows(tmp_path / "bad")
    assert "hunter2" not in repr(letter)
    assert "The value 'a${file:/f:k}' of the type" in letter["reason"]


class Picky(Sink[Any]):
    """Takes all rows but thirteens."""

    takes_arrow = True

    def stage(self, rows: Any, commit_id: CommitId, input_bytes: int) -> Manifest:
        del commit_id, input_bytes
        if 13 in rows["n"].to_pylist():
            raise RowsRefused("thirteen")
        return Manifest("here", "staged", -1, 1, 1)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None: ...

    def discard(self, commit_id: CommitId) -> None: ...

    def sweep(self, resource: Resource, token: Token) -> None: ...


def test_a_value_that_cannot_name_a_folder_keeps_no_other_row_waiting(
    run: Run, config: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text(f"n,s\n1,x\n2,{'y' * 300}\n3,z\n4,y\0\n")
    reports = run(config | {"sink.partition.by": "s"})
    assert failures(reports) == []
    assert [each["n"] for each in rows(tmp_path / "out")] == [1, 3]
    assert sorted(each["reason"] for each in rows(tmp_path / "bad")) == [
        "a value of `sink.partition.by` has a NUL, so it cannot name a folder",
        "a value of `sink.partition.by` is too long to name a folder",
    ]


def test_a_text_that_would_be_read_as_null_is_told_beside_a_null(
    run: Run, config: Config, tmp_path: Path
) -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    (tmp_path / "in" / "a.csv").write_text(f"n,s\n1,\n2,{null}\n3,z\n")
    told, *_ = failures(run(config | {"sink.partition.by": "s"}))
    assert f"a column of sink.partition.by has the text {null}, and also null: " in told


def test_rows_that_a_sink_refuses_are_left_out_where_that_is_tolerated(engine: Embedded) -> None:
    table: Any = pa.table({"n": range(20)})
    source = MagicMock(**{"read.return_value": table, "rejects.return_value": ()})
    source.blame.return_value = None
    told: list[str] = []

    def stage(most: int) -> Any:
        tolerance = Tolerance(most_searched=most, log=told.append)
        pipeline = Pipeline(source, (), Picky(), Pace(Limit(1, 1, 1)), tolerance)
        plan = BatchPlan((table,), (), 1, 20)
        batch = Batch(pipeline, Target(pipeline.sink), plan, CommitId("c", 0, Token(1, 0), 0))
        return engine.run("picky", batch.run)

    staged = stage(most=1)
    assert (staged.manifest.rows, staged.rows_in, staged.rejected) == (19, 20, 1)
    assert told == ["bad row: sink, 14 of the batch: thirteen"]
    with pytest.raises(RowsRefused):
        stage(most=0)


def test_a_topic_of_dead_letters_is_no_topic_that_its_connector_reads() -> None:
    reads = {"source.type": "kafka", "source.topics": "a,bad", "source.bootstrap.servers": "h:1"}
    flaws = flaws_in_queue({TOPIC: "bad", **reads})
    assert list(flaws) == [TOPIC]
    assert flaws[TOPIC].startswith("is read or written by the connector itself")
    elsewhere = {"errors.deadletterqueue.bootstrap.servers": "other:1"}
    assert flaws_in_queue({TOPIC: "bad", **reads, **elsewhere}) == {}
