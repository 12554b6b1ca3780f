# pyright: basic
"""ExtractNewRecordState beside Debezium's own class, event by event.

What differs on purpose is told, with its reason, by the docstring of the transform's module; the
tests at the end hold it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from transforms.conftest import made

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.stores.kafka.source.decoding import JsonDecoder, KafkaRows
from fairlead.runtime.pipeline.stores.kafka.source.envelope import EnvelopeDecoder
from fairlead_tests.transforms.peer import TransformPeer
from fairlead_tests.transforms.rows import Record, Rows, Type, normal, told

pytestmark = pytest.mark.spark

NAME = "io.debezium.transforms.ExtractNewRecordState"
ROW: Type = {
    "struct": [["id", "int"], ["name", "string"], ["é.price", {"decimal": [10, 2]}], ["ts", "date"]]
}
SOURCE: Type = {"struct": [["table", "string"], ["lsn", "bigint"], ["ts_ms", "bigint"]]}
TRANSACTION: Type = {"struct": [["id", "string"], ["total_order", "bigint"]]}
ENVELOPE: Type = {
    "struct": [
        ["before", ROW],
        ["after", ROW],
        ["source", SOURCE],
        ["op", "string"],
        ["ts_ms", "bigint"],
        ["transaction", TRANSACTION],
    ]
}
KEY: Type = {"struct": [["id", "int"]]}
OLD, NEW = ["1", "old", "1.25", "1"], ["1", "new", None, "18262"]
AT = ["orders", "77", "1700000000000"]
EVENTS = Rows(
    [
        Record([None, OLD, AT, "r", "5", None], ["1"], headers=[("h", "1")]),
        Record([OLD, NEW, AT, "u", "6", ["tx", "3"]], ["1"]),
        Record([NEW, None, AT, "d", "7", ["tx", None]], ["1"]),
        Record(None, ["1"], headers=[("h", "2")]),
        Record([["2", None, None, None], None, AT, "d", "8", None], ["2"]),
        Record([None, None, AT, "t", "9", None], None),
        Record([None, ["3", " ", "0.10", None], AT, "c", "10", None], ["3"]),
    ],
    ENVELOPE,
    KEY,
    value_name="shop.orders.Envelope",
)
MODES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone", "REWRITE")
MODE = "delete.tombstone.handling.mode"
ADDED = "op,table, lsn:position,source.ts_ms,ts_ms,transaction.id,total_order,none,before.name"
CASES: list[dict[str, str]] = [
    {},
    *({MODE: mode, "add.fields": ADDED, "add.headers": "op,source.lsn,none"} for mode in MODES),
    {"route.by.field": "name"},
    {"route.by.field": "name", MODE: "rewrite"},
    {"add.fields": "op:operation,source.lsn:at", "add.fields.prefix": ""},
    {"add.headers": "op,ts_ms:at", "add.headers.prefix": "x-", MODE: "rewrite-with-tombstone"},
    {"add.headers": "lsn", MODE: "rewrite-with-tombstone"},
    {"add.fields": "op:name", "add.fields.prefix": ""},
    {"add.fields": "op,op"},
    {"add.fields": "op:a:b"},
    {MODE: "keep"},
    {"route.by.field": "id"},
    {"route.by.field": "none"},
]


@pytest.fixture
def spark(engine: Embedded) -> SparkSession:
    session = engine.run("debezium", lambda session: session.newSession())
    session.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
    return session


@pytest.mark.parametrize("keys", CASES, ids=str)
def test_a_row_is_what_debeziums_own_class_makes_of_the_event(
    keys: dict[str, str], peer: TransformPeer, spark: SparkSession
) -> None:
    theirs = peer.apply(NAME, keys, EVENTS)
    if any(each and "error" in each for each in theirs):
        with pytest.raises((ConfigInvalid, PySparkException)):
            ours(keys, EVENTS, spark)
    else:
        assert ours(keys, EVENTS, spark) == [normal(each) for each in theirs if each is not None]


def ours(keys: dict[str, str], rows: Rows, spark: SparkSession) -> Sequence[Any]:
    return told(made(NAME, keys).apply(rows.frame(spark)))


def test_what_is_no_envelope_passes_as_with_debeziums_own_class(
    peer: TransformPeer, spark: SparkSession
) -> None:
    beats = Rows([Record(["5"]), Record(["6"])], {"struct": [["ts_ms", "bigint"]]})
    theirs = peer.apply(NAME, {"add.fields": "op"}, beats)
    assert ours({"add.fields": "op"}, beats, spark) == [normal(each) for each in theirs]
    alone = EVENTS.frame(spark).where("op IS NULL").drop(*EVENTS_COLUMNS)
    assert made(NAME, {}).apply(alone).count() == 0
    assert made(NAME, {MODE: "rewrite-with-tombstone"}).apply(alone).count() == 1


EVENTS_COLUMNS = ("before", "after", "source", "op", "ts_ms", "transaction")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"delete.handling.mode": "rewrite"}, "rewrite"),
        ({"delete.handling.mode": "none", "drop.tombstones": "true"}, "tombstone"),
        ({"drop.tombstones": "true"}, "drop"),
        ({"delete.handling.mode": "Rewrite", "drop.tombstones": "false"}, "rewrite-with-tombstone"),
        ({"delete.handling.mode": "none", MODE: "drop"}, "drop"),
    ],
    ids=str,
)
def test_keys_of_older_releases_mean_what_they_meant(
    old: dict[str, str], new: str, spark: SparkSession
) -> None:
    assert ours(old, EVENTS, spark) == ours({MODE: new}, EVENTS, spark)


def test_an_event_that_is_no_envelope_among_others_ends_the_job(spark: SparkSession) -> None:
    beat = Record([None, None, None, None, "5", None])
    mixed = replace(EVENTS, records=[*EVENTS.records, beat])
    with pytest.raises(PySparkException, match="an event is no envelope of Debezium"):
        ours({}, mixed, spark)


def test_what_rows_cannot_be_is_refused(spark: SparkSession) -> None:
    plain = EVENTS.frame(spark).drop("_key")
    with pytest.raises(ConfigInvalid, match="a tombstone, which needs the column _key"):
        made(NAME, {}).apply(plain)
    assert made(NAME, {MODE: "drop"}).apply(plain).count() == 3
    with pytest.raises(ConfigInvalid, match=r"drop\.fields\.header\.name: no column can be left"):
        made(NAME, {"drop.fields.header.name": "h"})
    texts = spark.sql("SELECT 'r' AS op, 'x' AS after, NULL AS before, 'k' AS _key")
    with pytest.raises(ConfigInvalid, match="neither image of the row has columns: after is str"):
        made(NAME, {}).apply(texts)


def test_a_struct_that_events_lack_has_no_fields_to_add(spark: SparkSession) -> None:
    plain = EVENTS.frame(spark).drop("transaction")
    rows = made(NAME, {"add.fields": "transaction.id,op", MODE: "drop"}).apply(plain)
    assert rows.columns[:5] == ["id", "name", "é.price", "ts", "__op"]


def payload(record: Record) -> dict[str, Any] | None:
    """Return an event as Debezium writes it into JSON."""
    if record.value is None:
        return None
    before, after, at, operation, moment, transaction = record.value
    images = [each and row(each) for each in (before, after)]
    return {
        **dict(zip(("before", "after"), images, strict=True)),
        "source": {"table": at[0], "lsn": int(at[1]), "ts_ms": int(at[2])},
        "op": operation,
        "ts_ms": int(moment),
        "transaction": transaction and {"id": transaction[0], "total_order": transaction[1]},
    }


def row(image: Sequence[str | None]) -> dict[str, Any]:
    number, name, price, day = image
    days = day and int(day)
    return {"id": number and int(number), "name": name, "price": price and float(price), "d": days}


def struct(name: str, /, **fields: str) -> dict[str, Any]:
    parts = [{"field": each, "type": kind, "optional": True} for each, kind in fields.items()]
    return {"type": "struct", "field": name, "optional": True, "fields": parts}


SCHEMA = {
    "type": "struct",
    "name": "shop.orders.Envelope",
    "fields": [
        *(struct(each, id="int32", name="string", price="double") for each in ("before", "after")),
        struct("source", table="string", lsn="int64", ts_ms="int64"),
        {"field": "op", "type": "string"},
        {"field": "ts_ms", "type": "int64"},
    ],
}
for image in SCHEMA["fields"][:2]:
    day = {"field": "d", "type": "int32", "name": "io.debezium.time.Date", "optional": True}
    image["fields"].append(day)  # type: ignore[index]
COLUMNS = "id INT, name STRING, price DOUBLE, d {}"
DDL = (
    "before STRUCT<{0}>, after STRUCT<{0}>, op STRING, ts_ms BIGINT, "
    "source STRUCT<table: STRING, lsn: BIGINT>"
).format(COLUMNS.format("INT"))


@pytest.mark.parametrize("has_schemas", [True, False])
def test_events_of_json_become_rows_with_their_schemas_and_without(
    has_schemas: bool, spark: SparkSession
) -> None:
    values = [payload(each) for each in EVENTS.records]
    if has_schemas:
        values = [each and {"schema": SCHEMA, "payload": each} for each in values]
    count, events = len(values), [each and json.dumps(each).encode() for each in values]
    records = pa.table(
        {
            "_value": pa.array(events, pa.binary()),
            "_key": pa.array([b"k"] * count, pa.binary()),
            "_topic": ["t"] * count,
            "_partition": pa.array([0] * count, pa.int32()),
            "_offset": pa.array(range(count), pa.int64()),
        }
    )
    rows = KafkaRows(["_key"], has_text_keys=True, separates_bad=False)
    decoder = EnvelopeDecoder(rows) if has_schemas else JsonDecoder(rows, DDL)
    keys = {MODE: "rewrite-with-tombstone", "add.fields": "op,lsn"}
    made_of = made("ExtractNewRecordState", keys).apply(decoder.decode(spark, records))
    days = ["1970-01-02", "2020-01-01"] if has_schemas else ["1", "18262"]
    assert [list(map(str, each)) for each in made_of.collect()] == [
        ["1", "old", "1.25", days[0], "false", "r", "77", "k"],
        ["1", "new", "None", days[1], "false", "u", "77", "k"],
        ["1", "new", "None", days[1], "true", "d", "77", "k"],
        ["None", "None", "None", "None", "None", "None", "None", "k"],
        ["2", "None", "None", "None", "true", "d", "77", "k"],
        ["3", " ", "0.1", "None", "false", "c", "77", "k"],
    ]
