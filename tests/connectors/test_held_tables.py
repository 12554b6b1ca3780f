# pyright: basic
"""Tables that a worker holds are written by Arrow as if Spark had written them."""

import multiprocessing
import signal
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.batches.frames import (
    arrow_schema_of,
    frame_of,
    plain_rows_of,
    rows_of,
)
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.settings import known_settings
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import SchemaRefused, SinkAway
from fairlead.runtime.pipeline.stores.files.sink.columns import COLUMNS
from fairlead.runtime.pipeline.stores.files.sink.sink import FileSink
from fairlead.runtime.pipeline.stores.files.sink.writing import _SETTINGS, WriteFormat
from fairlead.runtime.pipeline.stores.files.sink_folder import staging
from fairlead.runtime.pipeline.stores.files.sink_folder.root import SinkLocation
from fairlead_tests.connectors.held_tables import KNOWN, held, sink_at, stage_and_die
from fairlead_tests.connectors.pipes import config_from

TASK = Resource("c", 0)
DAY_US = 86_400_000_000
LONG = st.integers(-(2**63) + 1, 2**63 - 1)


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def numbers(precision: int, scale: int) -> tuple[Any, st.SearchStrategy[Any]]:
    most = 10**precision - 1
    values = st.integers(-most, most).map(lambda each: Decimal(f"{each}E-{scale}"))
    return pa.decimal128(precision, scale), values


def as_of(kind: Any, values: st.SearchStrategy[int]) -> tuple[Any, st.SearchStrategy[Any]]:
    """Return a type, and values of it that are drawn as whole numbers."""
    return kind, values


KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    *((getattr(pa, f"int{bits}")(), whole(bits)) for bits in (8, 16, 32, 64)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    *(numbers(*each) for each in ((1, 0), (5, 5), (9, 2), (18, 0), (19, 4), (38, 10), (38, 0))),
    (pa.string(), st.text(st.characters(codec="utf-8"))),
    (pa.large_string(), st.text(st.characters(codec="utf-8"))),
    (pa.binary(), st.binary()),
    (pa.large_binary(), st.binary()),
    as_of(pa.date32(), whole(32)),
    *(as_of(pa.timestamp("us", zone), LONG) for zone in (None, "UTC", "America/New_York")),
    as_of(pa.timestamp("ms", "UTC"), st.integers(-(2**53), 2**53)),
    as_of(pa.timestamp("s"), st.integers(-(2**40), 2**40)),
    as_of(pa.time64("us"), st.integers(0, DAY_US)),
    as_of(pa.time64("us"), st.integers(0, DAY_US - 1)),
    as_of(pa.time32("s"), st.integers(0, 86_399)),
]


def column(kind: Any, values: list[Any]) -> Any:
    if pa.types.is_temporal(kind):
        bits = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(values, bits).cast(kind)
    return pa.array(values, kind)


@st.composite
def tables(draw: st.DrawFn) -> Any:
    chosen = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=12))
    rows = draw(st.integers(1, 6))
    columns, fields = [], []
    for number, (kind, values) in enumerate(chosen):
        is_required = draw(st.booleans())
        each = values if is_required else st.none() | values
        made = draw(st.lists(each, min_size=rows, max_size=rows))
        columns.append(column(kind, made))
        metadata = {"PARQUET:field_id": "7"} if draw(st.booleans()) else None
        fields.append(pa.field(f"c{number}", kind, not is_required, metadata))
    return pa.table(columns, pa.schema(fields))


def by_spark(spark: Any, sink: FileSink, table: Any, number: int = 0) -> Manifest:
    """Stage a table as a frame."""
    frame = frame_of(spark, table)
    sink.prepare(arrow_schema_of(frame.schema))
    return sink.stage(frame, CommitId("c", 0, Token(1, 0), number), table.nbytes)


def files(root: Path, number: int = 0) -> list[Path]:
    folder = root / staging.batch_folder(CommitId("c", 0, Token(1, 0), number))
    return sorted(folder.glob("part-*.parquet"))


def told(table: Any) -> list[str]:
    """Return all values as texts, those of NaN too; times as numbers, whatever their year."""
    columns = []
    for each in table.columns:
        if pa.types.is_temporal(each.type):
            bits = pa.int32() if each.type.bit_width == 32 else pa.int64()
            columns.append(each.cast(bits))
        else:
            columns.append(each)
    return [repr(each.to_pylist()) for each in columns]


def same(spark: Any, ours: list[Path], theirs: list[Path]) -> None:
    """Check that pyarrow and Spark read the same columns and rows from files of both."""
    mine, its = (
        pa.concat_tables([papq.read_table(each, partitioning=None) for each in every])
        for every in (ours, theirs)
    )
    schemas = [str(papq.ParquetFile(every[0]).schema).splitlines()[2:] for every in (ours, theirs)]
    assert schemas[0] == schemas[1]
    assert mine.schema.remove_metadata() == its.schema.remove_metadata()
    assert told(mine) == told(its)
    frames = [spark.read.parquet(*map(str, every)) for every in (ours, theirs)]
    assert frames[0].schema == frames[1].schema
    rows: list[Any] = [rows_of(each) for each in frames]
    assert told(rows[0]) == told(rows[1])


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[Path, Path]]:
    """Make two new folders."""
    parent, numbers = tmp_path_factory.mktemp("sinks"), count()

    def make() -> tuple[Path, Path]:
        number = next(numbers)
        return parent / f"worker{number}", parent / f"spark{number}"

    return make


@pytest.mark.spark
@pytest.mark.timeout(300)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables())
def test_readers_find_the_same_in_files_of_the_worker_and_of_spark(
    engine: Embedded, roots: Callable[[], tuple[Path, Path]], table: Any
) -> None:
    ours, theirs = roots()

    def compare(spark: Any) -> None:
        manifest, other = held(sink_at(ours), table), by_spark(spark, sink_at(theirs), table)
        assert manifest is not None
        assert (manifest.rows, manifest.files) == (other.rows, other.files)
        same(spark, files(ours), files(theirs))
        kept = [[*(each / COLUMNS).glob("*.json")] for each in (ours, theirs)]
        assert [each.read_text() for each in kept[0]] == [each.read_text() for each in kept[1]]

    engine.run("t", compare)


@pytest.mark.spark
def test_rows_get_the_columns_and_the_wider_types_of_all_files(
    engine: Embedded, roots: Callable[[], tuple[Path, Path]]
) -> None:
    wide = pa.schema(
        {"a": pa.int64(), "b": pa.int64(), "c": pa.float64(), "d": pa.int32(), "e": pa.string()}
        | {"m": pa.decimal128(9, 2), "t": pa.timestamp("us"), "z": pa.timestamp("us", "UTC")}
    )
    few = {"C": [0.1, None], "b": [None, -(2**31)], "a": [-128, 127]}
    narrow = pa.table(few, pa.schema({"C": pa.float32(), "b": pa.int32(), "a": pa.int8()}))
    ours, theirs = roots()

    def compare(spark: Any) -> None:
        sinks = sink_at(ours), sink_at(theirs)
        for number, each in enumerate((wide.empty_table(), narrow)):
            assert held(sinks[0], each, number) is not None
            by_spark(spark, sinks[1], each, number)
        same(spark, files(ours, 1), files(theirs, 1))

    engine.run("t", compare)


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pa.list_(pa.int32()),
            pa.struct({"a": pa.int32()}),
            pa.dictionary(pa.int8(), pa.string()),
        ),
        *(pa.timestamp("ns"), pa.date64(), pa.duration("us"), pa.uint8(), pa.null(), pa.float16()),
        *(pa.decimal256(9, 2), pa.decimal128(9, -2), pa.binary(3)),
    ],
)
def test_rows_of_other_types_are_left_to_spark(kind: Any) -> None:
    assert plain_rows_of(pa.table({"a": pa.nulls(1, kind)})) is None


def test_rows_that_no_type_of_spark_holds_are_left_to_spark() -> None:
    late = pa.array([2**62], pa.int64())
    assert plain_rows_of(pa.table({"a": late.cast(pa.timestamp("ms"))})) is None
    assert plain_rows_of(pa.table({"a": late.cast(pa.timestamp("s", "UTC"))})) is None
    assert plain_rows_of(pa.table({"a": pa.array([1], pa.time64("ns"))})) is None


@pytest.mark.parametrize(("before", "now"), [(pa.date32(), pa.timestamp("us")), (pa.int32(), None)])
def test_a_cast_that_arrow_makes_otherwise_is_left_to_spark(
    tmp_path: Path, before: Any, now: Any
) -> None:
    now = now or pa.decimal128(12, 1)
    sink = sink_at(tmp_path)
    assert held(sink, pa.schema({"a": now}).empty_table()) is not None
    assert held(sink, pa.schema({"a": before}).empty_table(), 1) is None
    with pytest.raises(SchemaRefused):
        held(sink, pa.table({"a": ["x"]}), 2)


@pytest.mark.parametrize(
    ("settings", "form", "takes"),
    [
        ({}, {}, True),
        ({"spark.sql.parquet.compression.codec": "zstd"}, {}, False),
        ({}, {"partition_by": ("a",)}, False),
        ({}, {"options": {"compression": "gzip"}}, False),
    ],
)
def test_files_that_spark_would_write_otherwise_are_left_to_spark(
    tmp_path: Path, settings: dict[str, str], form: Any, *, takes: bool
) -> None:
    sink = sink_at(tmp_path, {**KNOWN, **settings}, **form)
    assert sink.takes_tables is takes
    assert (held(sink, pa.table({"a": [1]})) is not None) is takes


@pytest.mark.spark
def test_a_session_is_asked_where_nobody_knows_its_settings(
    engine: Embedded, tmp_path: Path
) -> None:
    sink = FileSink(SinkLocation(tmp_path, "", "c", None), WriteFormat("parquet"), print)
    table: Any = pa.table({"a": [1]})
    assert not sink.takes_tables
    assert held(sink, table) is None
    commit = CommitId("c", 0, Token(1, 0), 1)
    assert engine.run("t", lambda spark: sink.stage_table(table, commit, 8, spark)) is not None
    assert sink.takes_tables


@pytest.mark.spark
def test_the_settings_that_are_known_beforehand_are_those_of_a_session(engine: Embedded) -> None:
    def found(spark: Any) -> dict[str, str]:
        return {name: spark.conf.get(name) for name in _SETTINGS}

    assert engine.run("t", found) == _SETTINGS
    assert {name: KNOWN.get(name, value) for name, value in _SETTINGS.items()} == _SETTINGS


@pytest.mark.parametrize(
    ("conf", "master"),
    [
        ({"spark.driver.extraJavaOptions": "-Xss4m -Dspark.sql.ansi.enabled=false"}, ""),
        ({}, "sc://there:15002"),
    ],
)
def test_some_settings_are_known_to_no_worker(conf: dict[str, str], master: str) -> None:
    assert known_settings(conf, master) is None


@pytest.mark.parametrize(
    ("of_node", "of_connector", "takes"),
    [
        ({}, "snappy", True),
        ({}, "zstd", False),
        ({"spark.sql.parquet.compression.codec": "zstd"}, "snappy", True),
        (None, "snappy", False),
    ],
)
def test_the_settings_of_a_connector_are_those_of_its_files(
    tmp_path: Path, of_node: dict[str, str] | None, of_connector: str, *, takes: bool
) -> None:
    known = None if of_node is None else known_settings(of_node)
    context = Context(TASK, print, spark_settings=known)
    config = config_from(
        "files", {"path": str(tmp_path / "in"), "format": "csv", "schema": "a INT"}
    )
    config |= {"task.schema": "a INT", "sink.path": str(tmp_path / "out")}
    config["spark.conf.spark.sql.parquet.compression.codec"] = of_connector
    assert SparkPipeline().pipeline(context, config).sink.takes_tables is takes


def test_a_table_is_written_in_as_many_files_as_its_size_asks_for(tmp_path: Path) -> None:
    table = pa.table({"a": range(1000)})
    sink = sink_at(tmp_path, file_bytes=3000)
    manifest = held(sink, table)
    assert manifest is not None
    assert (manifest.rows, manifest.files) == (1000, 3)
    assert [papq.read_metadata(each).num_rows for each in files(tmp_path)] == [334, 334, 332]
    found = pa.concat_tables([papq.read_table(each) for each in files(tmp_path)])
    assert found["a"].to_pylist() == [*range(1000)]


def test_a_file_that_is_changed_before_it_counts_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable = staging.make_durable

    def tear(root: Path, folder: Path) -> None:
        durable(root, folder)
        (part,) = folder.glob("part-*")
        part.unlink()

    monkeypatch.setattr(staging, "make_durable", tear)
    with pytest.raises(SinkAway, match="of 1 rows its files have 0"):
        held(sink_at(tmp_path), pa.table({"a": [1]}))


@pytest.mark.parametrize("counts", [True, False])
def test_a_worker_that_is_killed_before_it_publishes_a_batch_loses_and_doubles_nothing(
    tmp_path: Path, *, counts: bool
) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(
        target=stage_and_die, args=(str(tmp_path), theirs), kwargs={"counts": counts}
    )
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    sink, commit = sink_at(tmp_path), CommitId("c", 0, Token(1, 0), 1)
    if counts:  # the next owner publishes it, twice
        manifest = ours.recv()
        for _ in range(2):
            sink.publish(manifest, commit, 1)
    else:  # or reads it again
        sink.sweep(TASK, Token(1, 0))
        again = held(sink, pa.table({"a": [2, 3]}), 2)
        assert again is not None
        sink.publish(again, CommitId("c", 0, Token(1, 0), 2), 2)
    sink.sweep(TASK, Token(1, 0))
    found = sorted(papq.read_table(tmp_path)["a"].to_pylist())
    assert found == [0, 1, 2, 3]
    assert not [*(tmp_path / staging.STAGING).glob("**/part-*")]
