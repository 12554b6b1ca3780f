# pyright: basic
"""Records of Kafka through Spark: values in JSON, and a whole pipeline into files."""

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.spi.rows import Rejects
from fairlead_tests.kafka.pipes import Reading, envelope, run_connector, source_config
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger

pytestmark = pytest.mark.spark

PLAIN = {"value_converter": "json", "value_converter_schemas_enable": "false"}
Bad = tuple[int, str, str]
FEW = {"metadata_columns": "offset"}


@pytest.fixture
def rows(engine: Embedded, topics: Topics, topic: str) -> Iterator[Any]:
    """Read one batch of the topic as a config says; return its rows and its bad ones."""
    begun: list[Reading] = []

    def rows(errors: str = "none", **given: str) -> tuple[list[dict[str, Any]], list[Bad]]:
        config = source_config(topics.bootstrap, topics=topic, **FEW, **given)
        letters_in = {"errors.deadletterqueue.path": "/bad"}
        reading = Reading(config | letters_in | {"errors.tolerance": errors})
        begun.append(reading)
        plan = reading.plan()

        def job(spark: Any) -> tuple[list[dict[str, Any]], list[Bad]]:
            try:
                read: Any = reading.source.read(spark, plan.ranges)
                table: Any = read if isinstance(read, pa.Table) else read.toArrow()
                found: list[dict[str, Any]] = table.to_pylist()
            except Exception as error:
                raise reading.source.blame(error) or error from error
            reading.source.verify(plan.ranges)
            bad = [each for one in reading.source.rejects() for each in letters(one)]
            return found, bad

        return engine.run("test", job)

    yield rows
    for each in begun:
        each.source.close()


def letters(rejects: Rejects) -> list[Bad]:
    """Return the offset, the reason and the text of each bad row."""
    frame: Any = rejects.frame
    found = frame.toArrow().to_pylist()
    assert rejects.count() == len(found)
    assert all(dict(each["position"])["partition"] == "0" for each in found)
    return [(int(dict(each["position"])["offset"]), each["reason"], each["raw"]) for each in found]


def test_plain_json_has_the_columns_that_are_given_or_seen(
    topics: Topics, topic: str, rows: Any
) -> None:
    topics.write(topic, ['{"n": 1, "day": "2024-02-29", "more": [1]}', None, '{"day": null}'])
    found, _ = rows(**PLAIN, schema="n INT, day DATE")
    days = [row["day"] and row["day"].isoformat() for row in found]
    assert ([row["n"] for row in found], days) == ([1, None, None], ["2024-02-29", None, None])
    assert set(found[0]) == {"n", "day", "_offset"}
    seen, _ = rows(**PLAIN)
    assert [row["more"] for row in seen] == [[1], None, None]


NO_OBJECT = "is not a JSON object"
NO_INT = 'column `n` (INT): For input string: "x"'


def test_values_that_do_not_fit_are_told_by_their_places_or_left_out_as_bad_rows(
    topics: Topics, topic: str, rows: Any
) -> None:
    bad = {"{": NO_OBJECT, '"text"': NO_OBJECT, '{"n": "x"}': NO_INT, "5": NO_OBJECT}
    topics.write(topic, ['{"n": 1}', *bad, '{"n": 2}'])
    found, left_out = rows("all", **PLAIN, schema="n INT")
    assert found == [{"n": 1, "_offset": 0}, {"n": 2, "_offset": 5}]
    assert sorted(left_out) == [(n, why, each) for n, (each, why) in enumerate(bad.items(), 1)]
    for place, each in enumerate(bad, 6):  # one at a time: any of several may be told
        topics.cut(topic, place)
        topics.write(topic, [each])
        with pytest.raises(BadInput) as told:
            rows(**PLAIN, schema="n INT")
        where = f"the record of {topic}-0 at offset {place}: "
        assert str(told.value) == f"{where}it is no JSON object that fits the schema"


def test_columns_that_values_have_beside_the_schema_are_refused_added_or_set_aside(
    topics: Topics, topic: str, rows: Any
) -> None:
    more = '{"n": 2, "x": 1.5}'
    topics.write(topic, ['{"n": 1}', more])
    given = {**PLAIN, "schema": "n INT"}
    with pytest.raises(BadInput, match=rf"{topic}-0 at offset 1: .*no column `x` DOUBLE"):
        rows(**given, schema_evolution="fail")
    assert rows(**given, schema_evolution="add-columns")[0] == [
        {"n": 1, "x": None, "_offset": 0},
        {"n": 2, "x": 1.5, "_offset": 1},
    ]
    found, ((offset, why, raw),) = rows(**given, schema_evolution="dead-letter")
    assert found == [{"n": 1, "_offset": 0}]
    assert (offset, raw) == (1, more)
    assert why.startswith("the schema has no column `x` DOUBLE")


def test_an_envelope_brings_its_columns_along(topics: Topics, topic: str, rows: Any) -> None:
    may: dict[str, Any] = {"optional": True}
    fields: list[dict[str, Any]] = [
        {"field": "n", "type": "int32"},
        {"field": "b", "type": "bytes", **may},
        {"field": "d", "type": "int32", "name": "org.apache.kafka.connect.data.Date", **may},
        {
            "field": "c",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
            **may,
        },
        {
            "field": "s",
            "type": "struct",
            "fields": [
                {"field": "t", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
            ],
            **may,
        },
        {"field": "l", "type": "array", "items": {"type": "string"}, **may},
    ]
    first = {"n": 1, "b": "AQI=", "d": 1, "c": 1.25, "s": {"t": 1000}, "l": ["x"]}
    second = envelope(
        [{"field": "n", "type": "int32"}, {"field": "z", "type": "boolean"}], {"n": 2, "z": True}
    )
    third = envelope(fields, {"n": 3})
    topics.write(topic, [envelope(fields, first), None, second, third])
    found, _ = rows(value_converter="json")
    assert [row["n"] for row in found] == [1, None, 2, 3]
    one, none, two, _ = found
    assert (one["n"], one["b"], one["d"].isoformat()) == (1, b"\x01\x02", "1970-01-02")
    assert (str(one["c"]), one["s"]["t"].timestamp(), one["l"]) == ("1.25", 1.0, ["x"])
    assert (two["n"], two["z"], one["z"], none["n"]) == (2, True, None, None)


def test_decimals_and_times_are_those_that_connects_converter_wrote(
    topics: Topics, topic: str, rows: Any
) -> None:
    base64 = '"c":"fQ==","in":{"x":"gw=="},"l":["AA==",null],"m":{"k":"Ah4Z4Mm6sj///w=="}'
    numeric = '"c":1.25,"in":{"x":-1.25},"l":[0.00,null],"m":{"k":99999999999999999999.99}'
    written = (
        f'{{"n":1,{base64},"t":{{"k":1}}}}',
        f'{{"n":2,{numeric},"t":{{"k":1}}}}',
        '{"n":3,"c":"1234","in":null,"l":[],"m":{},"t":{}}',  # base64 that looks like a number
        '{"n":4,"c":"12345"}',
    )
    dec = {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2"},
        "optional": True,
    }
    day = {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1}
    text = {"type": "string"}
    fields = [
        {"field": "n", "type": "int32"},
        {"field": "c", **dec},
        {"field": "in", "type": "struct", "fields": [{"field": "x", **dec}], "optional": True},
        {"field": "l", "type": "array", "items": dec, "optional": True},
        {"field": "m", "type": "map", "keys": text, "values": dec, "optional": True},
        {"field": "t", "type": "map", "keys": text, "values": day, "optional": True},
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    lone = f'{{"schema":{json.dumps(dec)},"payload":"fQ=="}}'
    whole = [f'{{"schema":{schema},"payload":{each}}}' for each in written]
    topics.write(topic, [*whole, lone, None])
    one, two, three, last, none = rows("all", value_converter="json")[0]
    same = {
        "c": Decimal("1.25"),
        "in": {"x": Decimal("-1.25")},
        "l": [Decimal("0.00"), None],
        "m": [("k", Decimal("99999999999999999999.99"))],
        "t": [("k", date(1970, 1, 2))],
        "_value": None,
    }
    assert (one, two) == ({"n": 1, **same, "_offset": 0}, {"n": 2, **same, "_offset": 1})
    assert (three["c"], last["_value"], none["c"]) == (Decimal("-26588.24"), Decimal("1.25"), None)
    _, ((offset, why, raw),) = rows("all", value_converter="json")
    assert (offset, raw) == (3, written[3])
    assert why == "its Decimals are neither numbers nor base64: Invalid base64 encoded string"
    with pytest.raises(BadInput, match=f"the record of {topic}-0 at offset 3: its Decimals are"):
        rows(value_converter="json")


def test_a_batch_of_which_every_record_is_bad_is_passed(
    topics: Topics, topic: str, rows: Any
) -> None:
    name = "org.apache.kafka.connect.data.Decimal"
    decimal = {"type": "bytes", "name": name, "parameters": {"scale": "2"}}
    topics.write(topic, [envelope([{"field": "c", **decimal}], {"c": "12345"})])
    found, left_out = rows("all", value_converter="json")
    assert (found, [offset for offset, _, _ in left_out]) == ([], [0])
    topics.cut(topic, 1)
    topics.write(topic, ['{"n": 1, "x": 2}'])
    found, left_out = rows(**PLAIN, schema="n INT", schema_evolution="dead-letter")
    assert (found, [offset for offset, _, _ in left_out]) == ([], [1])


def test_a_decimal_may_have_a_negative_scale(topics: Topics, topic: str, rows: Any) -> None:
    name = "org.apache.kafka.connect.data.Decimal"
    decimal = {"type": "bytes", "name": name, "parameters": {"scale": "-2"}}
    topics.write(topic, [envelope([{"field": "c", **decimal}], {"c": "BQ=="})])
    assert rows(value_converter="json") == ([{"c": Decimal(500), "_offset": 0}], [])


def test_values_without_an_envelope_or_with_a_strange_one_say_what_to_set(
    topics: Topics, topic: str, rows: Any
) -> None:
    lone = json.dumps({"schema": {"type": "string"}, "payload": "alone"})
    topics.write(topic, ['{"n": 1}', lone])
    with pytest.raises(BadInput, match=r"at offset 0: .*schemas\.enable=false"):
        rows(value_converter="json")
    found, left_out = rows("all", value_converter="json")
    assert found == [{"_value": "alone", "_offset": 1}]
    ((offset, why, raw),) = left_out
    assert (offset, raw, "schemas.enable=false" in why) == (0, '{"n": 1}', True)
    strange = json.dumps({"schema": {"type": "odd"}, "payload": 1})
    topics.cut(topic, 2)
    topics.write(topic, [strange])
    with pytest.raises(BadInput, match=r"offset 2: .*nothing is known of the type 'odd'"):
        rows(value_converter="json")
    topics.write(topic, [json.dumps({"schema": "odd", "payload": 1}), lone])
    found, left_out = rows("all", value_converter="json")
    assert found == [{"_value": "alone", "_offset": 4}]
    assert sorted(offset for offset, _, _ in left_out) == [2, 3]


def test_records_become_files_once(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.widen(topic, 3)
    wanted = range(3000)
    for part in range(3):
        values = [f'{{"n": {n}}}' for n in wanted if n % 3 == part]
        topics.write(topic, values, partition=part)
    config = source_config(topics.bootstrap, topics=topic, **PLAIN, schema="n INT") | {
        "sink.path": str(tmp_path / "out"),
        "batch.max.rows": "700",
        "task.restart.budget": "0",
        "transforms": "q",
        "transforms.q.type": "sql",
        "transforms.q.query": "SELECT n, _partition FROM input",
    }
    ledger = MemoryLedger()
    run_connector(engine, ledger, config, len(wanted))
    found = papq.read_table(tmp_path / "out").to_pylist()
    assert sorted(row["n"] for row in found) == [*wanted]
    assert {(row["n"] % 3) == row["_partition"] for row in found} == {True}
    offsets = ledger.offsets(config["name"]).values()
    assert sorted(int(str(each["kafka_offset"])) for each in offsets) == [1000] * 3


def test_a_batch_without_rows_names_no_columns_to_the_sink(
    engine: Embedded, topics: Topics, topic: str, tmp_path: Path
) -> None:
    fields = [{"field": "n", "type": "int32"}]
    topics.write(topic, ["no envelope"])
    config = source_config(topics.bootstrap, topics=topic, value_converter="json") | {
        "sink.path": str(tmp_path / "out"),
        "batch.max.rows": "1",
        "task.restart.budget": "0",
        "errors.tolerance": "all",
        "transforms": "q",
        "transforms.q.type": "sql",
        "transforms.q.query": "SELECT n FROM input",
    }
    topics.write(topic, [envelope(fields, {"n": 1})])
    run_connector(engine, MemoryLedger(), config, 1)
    assert papq.read_table(tmp_path / "out").to_pylist() == [{"n": 1}]
