# pyright: basic
"""What Connect's converters make of nothing, of defaults and required fields; no broker is needed.

Each case is one batch of records; a bad one is told by its offset, and ends the batch where none
may be bad.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.formats.evolution.policy import SchemaPolicy
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.errors import BadInput, SchemaRefused
from fairlead.runtime.pipeline.stores.kafka.source.decoding import (
    HeaderDecoder,
    JsonDecoder,
    KafkaRows,
    PlainDecoder,
    RecordDecoder,
)
from fairlead.runtime.pipeline.stores.kafka.source.envelope import EnvelopeDecoder
from fairlead.runtime.pipeline.stores.kafka.source.json_keys import JsonKeyDecoder
from fairlead.runtime.pipeline.stores.kafka.source.reader import HEADER_FLAW

pytestmark = pytest.mark.spark

Texts = Sequence[bytes | None]
MARK = b"\xef\xbb\xbf"
NOTHING: Texts = (b"", b" \r\n", b"null", b" null\n", MARK, None)
MILLIS = "org.apache.kafka.connect.data.Timestamp"
DECIMAL = "org.apache.kafka.connect.data.Decimal"


def rows_of(*metadata: str, separates_bad: bool = True) -> KafkaRows:
    return KafkaRows(metadata, has_text_keys=False, separates_bad=separates_bad)


def records(values: Texts, keys: Texts | None = None) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "_value": pa.array(values, pa.binary()),
            "_key": pa.array(keys or [None] * count, pa.binary()),
            "_topic": ["t"] * count,
            "_partition": pa.array([0] * count, pa.int32()),
            "_offset": pa.array(range(count), pa.int64()),
        }
    )


def decode(
    engine: Embedded, decoder: RecordDecoder, table: pa.Table
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the rows of a batch, and the reasons of its bad records by their offsets."""

    def run(spark: Any) -> Any:
        made = decoder.decode(spark, table)
        rows = (made if isinstance(made, pa.Table) else made.toArrow()).to_pylist()
        letters = [row for each in decoder.rejects() for row in each.frame.collect()]
        assert sum(each.count() for each in decoder.rejects()) == len(letters)
        return rows, {int(row.position["offset"]): row.reason for row in letters}

    found: tuple[list[dict[str, Any]], dict[int, str]] = engine.run("like connect", run)
    return found


def envelopes(
    engine: Embedded, values: Texts, *metadata: str, separates_bad: bool = True
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    return decode(
        engine, EnvelopeDecoder(rows_of(*metadata, separates_bad=separates_bad)), records(values)
    )


def envelope(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def struct(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [*fields], **more}


def field(name: str, kind: str = "int32", /, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": kind, **more}


def test_no_bytes_and_null_are_no_value_in_plain_json_in_an_envelope_and_in_a_key(
    engine: Embedded,
) -> None:
    plain = JsonDecoder(rows_of("_offset"), "a INT")
    first = b'{"a": 1}'
    nulls = [{"a": None, "_offset": each} for each in range(1, 7)]
    wanted = [{"a": 1, "_offset": 0}, *nulls]
    assert decode(engine, plain, records((first, *NOTHING))) == (wanted, {})
    full = envelope(struct(field("a")), {"a": 1})
    assert envelopes(engine, (full, *NOTHING), "_offset") == (wanted, {})
    values = PlainDecoder(rows_of("_key"), has_texts=True)
    for keys in (
        JsonKeyDecoder(rows_of("_key"), "`_key` STRUCT<a: INT>", values),
        JsonKeyDecoder(rows_of("_key"), "", values),
    ):
        key = first if keys is not None and keys._ddl else full
        table = records([b""] * 7, (key, *NOTHING))
        rows, bad = decode(engine, keys, table)
        assert [row["_key"] for row in rows] == [{"a": 1}, *[None] * 6]
        assert ({row["_value"] for row in rows}, bad) == ({""}, {})


def test_tombstones_have_the_columns_of_the_first_usable_schema_and_are_never_bad(
    engine: Embedded,
) -> None:
    sound, odd = struct(field("a")), struct(field("_offset"))
    values = (None, envelope(odd, {"_offset": 1}), b"", envelope(sound, {"a": 1}), None)
    rows, bad = envelopes(engine, values, "_offset")
    assert [(row["_offset"], row["a"]) for row in rows] == [(0, None), (2, None), (3, 1), (4, None)]
    assert bad.keys() == {1}


def test_tombstones_alone_have_the_columns_of_the_last_records_of_their_topics(
    engine: Embedded,
) -> None:
    looks: list[int] = []

    def sample() -> pa.Table:
        looks.append(1)
        last = (envelope(struct(field("a")), {"a": 1}), b"odd", envelope({"type": "map"}, {}), None)
        return records(last)

    made = EnvelopeDecoder(rows_of("_offset")._replace(sample=sample))
    for _ in range(2):
        rows, bad = decode(engine, made, records((None, b"")))
        assert (rows, bad) == ([{"a": None, "_offset": each} for each in range(2)], {})
    assert looks == [1]
    made = EnvelopeDecoder(rows_of("_offset")._replace(sample=lambda: records((None,))))
    rows, _ = decode(engine, made, records((None,)))
    assert rows == [{"_offset": 0}]


def test_a_byte_order_mark_is_passed_over(engine: Embedded) -> None:
    plain = JsonDecoder(rows_of(), "a INT")
    assert decode(engine, plain, records((MARK + b'{"a": 1}',))) == ([{"a": 1}], {})
    full = envelope(struct(field("a")), {"a": 1})
    assert envelopes(engine, (MARK + full,)) == ([{"a": 1}], {})
    values = PlainDecoder(rows_of("_key"), has_texts=True)
    keys = JsonKeyDecoder(rows_of("_key"), "", values)
    rows, _ = decode(engine, keys, records((b"v",), (MARK + full,)))
    assert rows == [{"_value": "v", "_key": {"a": 1}}]


MORE = "it has more text after its first JSON value: a record is one value, and one row"
NO_TEXT = "it is not in UTF-8"
WRONG = {
    b'{"a":1}\n{"a":2}\n{"a":3}\n': MORE,
    b'{"a":1}{"a":2}': MORE,
    b'{"a":1} trailing': MORE,
    b'{"a": +INF} {"a": 2}': MORE,
    b'{"a":1}\r\n[2]': MORE,
    b'{"a":"\xff"}': NO_TEXT,
    b'[{"a":1},{"a":2}]': "is not a JSON object",
    '{"a":1}'.encode("utf-16"): NO_TEXT,
}


def test_a_value_of_which_a_part_would_be_lost_is_a_bad_record(engine: Embedded) -> None:
    plain = JsonDecoder(rows_of("_offset"), "a STRING")
    sound = (b'{"a":"1"}\0', b'{"a":"2"},\r\n', b'{"a":\n"3"}')
    rows, bad = decode(engine, plain, records((*sound, *WRONG)))
    assert [row["a"] for row in rows] == ["1", "2", "3"]
    assert bad == dict(enumerate(WRONG.values(), 3))
    strict = JsonDecoder(rows_of(separates_bad=False), "a STRING")
    for value, why in WRONG.items():
        told = why if why.startswith("it ") else "it is no JSON object"
        with pytest.raises(TaskError, match=f"the record of t-0 at offset 0: {told}"):
            decode(engine, strict, records((value,)))


def test_an_envelope_of_which_a_part_would_be_lost_is_a_bad_record(engine: Embedded) -> None:
    full = envelope(struct(field("a", "string")), {"a": "x"})
    values = (full + full, full.replace(b'"x"', b'"\xff"'), full[:-1] + b',"more":1}')
    rows, bad = envelopes(engine, (full, *values))
    assert rows == [{"a": "x"}]
    assert ({*bad}, bad[2]) == ({1, 2, 3}, NO_TEXT)
    broken = full.replace(b'"string"', b'"\xff"')
    assert "its schema cannot be used" in envelopes(engine, (broken,))[1][0]


def test_defaults_stand_for_null_and_missing_fields_at_any_depth(engine: Embedded) -> None:
    decimal = {"name": DECIMAL, "parameters": {"scale": "2"}}
    inner = [field("n", default=1), field("t", "int64", name=MILLIS, default=1000)]
    schema = struct(
        field("a", default=7, optional=True),
        field("s", "string", default="it's"),
        field("b", "boolean", default=False),
        field("y", "bytes", default="AQI="),
        field("c", "bytes", default="fQ==", **decimal),
        field("f", "float", default=1.5),
        field("i", **struct(*inner, optional=True) | {"type": "struct"}),
        field("l", "array", items={"type": "int32", "default": 3}, optional=True),
        field("m", "map", keys={"type": "string"}, values=struct(*inner), optional=True),
        field("j", **struct(field("n", default=1)) | {"type": "struct", "default": {"n": 5}}),
    )
    given = {"a": 5, "s": "x", "b": True, "y": "AA==", "c": "AA==", "f": 2.0, "i": {}}
    given |= {"l": [1, None], "m": {"k": {"n": 2}}, "j": {}}
    values = [envelope(schema, each) for each in ({}, given, dict.fromkeys(given))]
    rows, bad = envelopes(engine, values)
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    none = {"a": 7, "s": "it's", "b": False, "y": b"\x01\x02", "c": Decimal("1.25"), "f": 1.5}
    none |= {"i": None, "l": None, "m": None, "j": {"n": 5}}
    full = {"a": 5, "s": "x", "b": True, "y": b"\0", "c": Decimal("0.00"), "f": 2.0}
    full |= {"i": {"n": 1, "t": second}, "l": [1, 3], "j": {"n": 1}}
    full |= {"m": [("k", {"n": 2, "t": second})]}
    assert (rows, bad) == ([none, full, none], {})


LACKS = "it has no value for the field `{}`, which its schema requires"


def test_required_fields_that_are_null_or_missing_make_a_bad_record_at_any_depth(
    engine: Embedded,
) -> None:
    schema = struct(
        field("id"),
        field("s", **struct(field("x"), optional=True) | {"type": "struct"}),
        field("l", "array", items={"type": "int32"}, optional=True),
        field("m", "map", keys={"type": "string"}, values={"type": "int32"}, optional=True),
    )
    sound = {"id": 1, "s": {"x": 1}, "l": [1], "m": {"k": 1}}
    payloads: list[Any] = [sound, {"id": 2}, {}, {"id": None}, {"id": 1, "s": {}}]
    payloads += [{"id": 1, "l": [1, None]}, {"id": 1, "m": {"k": None}}, None, {"id": "x"}]
    rows, bad = envelopes(engine, [envelope(schema, each) for each in payloads])
    assert rows == [{**sound, "m": [("k", 1)]}, {"id": 2, "s": None, "l": None, "m": None}]
    names = ("id", "id", "x", "l", "m")
    assert [bad.pop(each) for each in range(2, 7)] == [LACKS.format(each) for each in names]
    assert bad == {
        7: "its payload is null, but its schema requires a value",
        8: 'column `id` (INT): For input string: "x"',
    }
    for payload, why in (({}, LACKS.format("id")), (None, "its payload is null")):
        with pytest.raises((TaskError, BadInput), match=f"t-0 at offset 0: {why}"):
            envelopes(engine, (envelope(schema, payload),), separates_bad=False)
    lone = [envelope({"type": "int32", "optional": True}, None), envelope({"type": "int32"}, None)]
    lone.append(envelope({"type": "int32", "default": 0}, None))
    found, bad = envelopes(engine, lone, "_offset")
    assert found == [{"_value": None, "_offset": 0}, {"_value": 0, "_offset": 2}]
    assert bad.keys() == {1}


def test_milliseconds_that_no_timestamp_holds_make_a_bad_record(engine: Embedded) -> None:
    debezium = "io.debezium.time.Timestamp"
    schema = struct(
        field("ts", "int64", name=MILLIS, optional=True),
        field("l", "array", items={"type": "int64", "name": debezium}, optional=True),
    )
    late = 9_223_372_036_825_200_000
    payloads = ({"ts": 0}, {"ts": late}, {"ts": -late}, {"l": [0, late]})
    rows, bad = envelopes(engine, [envelope(schema, each) for each in payloads])
    assert [row["ts"] for row in rows] == [datetime(1970, 1, 1, tzinfo=UTC)]
    told = "it has a time in the field `{}` that no timestamp holds: {} ms since 1970"
    wanted = (("ts", late), ("ts", -late), ("l", late))
    assert bad == {at: told.format(*each) for at, each in enumerate(wanted, 1)}
    with pytest.raises(TaskError, match="t-0 at offset 0: it has a time in the field `ts`"):
        envelopes(engine, (envelope(schema, {"ts": late}),), separates_bad=False)


def test_keys_have_the_defaults_of_their_schema_and_what_it_requires(engine: Embedded) -> None:
    schema = struct(
        field("a"),
        field("d", default=7),
        field("f", "float", optional=True),
        field("t", "int64", name=MILLIS, optional=True),
        field("l", "array", items={"type": "int32"}, optional=True),
    )
    sound = ({"a": 1}, {"a": 2, "d": None, "f": 1.5, "t": 0, "l": [1]})
    wrong: list[Any] = [{"d": 1}, {"a": None}, {"a": 1, "f": 1e39}, {"a": 1, "t": 1 << 62}]
    wrong += [{"a": 1, "l": [None]}, None]
    values = PlainDecoder(rows_of("_key"), has_texts=True)
    texts = [envelope(schema, each) for each in (*sound, *wrong)]
    rows, bad = decode(
        engine, JsonKeyDecoder(rows_of("_key"), "", values), records([b"v"] * 8, texts)
    )
    at = datetime(1970, 1, 1, tzinfo=UTC)
    assert [row["_key"] for row in rows] == [
        {"a": 1, "d": 7, "f": None, "t": None, "l": None},
        {"a": 2, "d": 7, "f": 1.5, "t": at, "l": [1]},
    ]
    needs = "its key has no value for {}, which its schema requires"
    a = needs.format("the field `a`")
    assert [bad[2], bad[3], bad[6], bad[7]] == [a, a, needs.format("it"), needs.format("it")]
    assert bad[4] == 'its key does not fit: "1E+39" is no float'
    assert bad[5].startswith("its key is too large for struct<")


def test_fields_that_differ_in_case_only_are_told_with_their_record(engine: Embedded) -> None:
    adds = SchemaPolicy("add-columns", is_exact=True)
    values = (b'{"id": 1}', b'{"ID": 3}', b'{"id": 4}')
    why = "column `ID` differs from `id` in case only"
    with pytest.raises(SchemaRefused, match=f"the record of t-0 at offset 1: .*{why}"):
        decode(engine, JsonDecoder(rows_of(), "id INT", adds), records(values))
    nested = (b'{"s": {"id": 1}}', b'{"s": {"id": 1, "Id": 2}}')
    why = "column `s.Id` differs from `s.id` in case only"
    with pytest.raises(SchemaRefused, match=f"at offset 1: .*{why}"):
        decode(engine, JsonDecoder(rows_of(), "s STRUCT<id: BIGINT>", adds), records(nested))
    schemas = (struct(field("id")), struct(field("ID")), struct(field("a"), field("A")))
    payloads = ({"id": 1}, {"ID": 3}, {"a": 1, "A": 2})
    both = [envelope(*each) for each in zip(schemas, payloads, strict=True)]
    rows, bad = envelopes(engine, both)
    assert rows == [{"id": 1}]
    assert [each.partition(": ")[2] for each in (bad[1], bad[2])] == [
        "its field `ID` and the column `id` of metadata, or of a record before it, differ in case "
        "only",
        "its fields `a` and `A` differ in case only",
    ]


def test_the_names_of_a_refused_schema_do_not_refuse_another(engine: Embedded) -> None:
    schemas = (struct(field("ID"), field("_offset")), struct(field("id")))
    payloads = ({"ID": 1, "_offset": 2}, {"id": 3})
    both = [envelope(*each) for each in zip(schemas, payloads, strict=True)]
    rows, bad = envelopes(engine, both, "_offset")
    assert (rows, [*bad]) == ([{"id": 3, "_offset": 1}], [0])


def test_columns_that_rows_would_have_twice_are_refused_by_name(engine: Embedded) -> None:
    for ddl, metadata in (("id INT, ID INT", ()), ("`_Offset` INT", ("_offset",))):
        with pytest.raises(ConfigInvalid, match=r"source\.schema: the columns .* have one name"):
            decode(engine, JsonDecoder(rows_of(*metadata), ddl), records((b"{}",)))
    own = envelope(struct(field("_offset")), {"_offset": 5})
    _, bad = envelopes(engine, (own,), "_offset")
    assert bad[0].endswith(
        "its field `_offset` has the name of a column of source.metadata.columns"
    )


def test_a_record_with_unreadable_headers_is_bad_and_named(engine: Embedded) -> None:
    table = records((b"1", b"2")).append_column(HEADER_FLAW, pa.array([None, "why"]))
    made = HeaderDecoder(rows_of(), PlainDecoder(rows_of(), has_texts=True))
    assert decode(engine, made, table) == ([{"_value": "1"}], {1: "why"})
    strict = rows_of(separates_bad=False)
    made = HeaderDecoder(strict, PlainDecoder(strict, has_texts=True))
    with pytest.raises(BadInput, match="the record of t-0 at offset 1: why"):
        decode(engine, made, table)
