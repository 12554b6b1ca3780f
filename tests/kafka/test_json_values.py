# pyright: basic
"""Values in JSON that Kafka's own converter refuses, or that nobody can keep, are bad records."""

import json
from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.stores.kafka.source.decoding import JsonDecoder, KafkaRows
from fairlead.runtime.pipeline.stores.kafka.source.envelope import EnvelopeDecoder

VALUES = (
    rb'{"n": 1, "s": "\ud83d\ude00"}',
    rb'{"n": 2, "s": "\\ud83d"}',  # letters, not an escape
    b"{'n': 3, 's': 'x'}",
    rb'{"n": 4, "s": "cut \ud83d"}',
    rb'{"n": 5, "s": "\ude00 cut"}',
    b'{"n": 6, "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    None,
)


def records(values: tuple[bytes | None, ...]) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "_value": pa.array(values, pa.binary()),
            "_topic": ["t"] * count,
            "_partition": pa.array([0] * count, pa.int32()),
            "_offset": pa.array(range(count), pa.int64()),
        }
    )


def decoder(*, separates_bad: bool) -> JsonDecoder:
    return JsonDecoder(
        KafkaRows((), has_text_keys=False, separates_bad=separates_bad), "n INT, s STRING"
    )


@pytest.mark.spark
def test_lone_surrogates_single_quotes_and_what_is_nested_too_deep_are_bad_rows(
    engine: Embedded,
) -> None:
    made = decoder(separates_bad=True)

    def run(spark: Any) -> tuple[list[Any], dict[str, str], int]:
        rows = [tuple(row) for row in made.decode(spark, records(VALUES)).collect()]
        (rejects,) = made.rejects()
        letters = {row.position["offset"]: row.reason for row in rejects.frame.collect()}
        return rows, letters, rejects.count()

    rows, letters, count = engine.run("json", run)
    assert rows == [(1, "\N{GRINNING FACE}"), (2, r"\ud83d"), (None, None)]
    assert letters.keys() == {"2", "3", "4", "5"}
    assert (letters["2"], count) == ("is not a JSON object", 4)
    assert letters["3"] == letters["4"]
    assert letters["3"].startswith("it escapes a lone surrogate")
    assert letters["5"].startswith("it has values nested more than 100 deep")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("row", "why"), [(2, "no JSON object"), (3, "lone surrogate"), (5, "100 deep")]
)
def test_where_none_may_be_bad_the_first_is_told_by_its_place(
    engine: Embedded, row: int, why: str
) -> None:
    def run(spark: Any) -> None:
        decoder(separates_bad=False).decode(spark, records(VALUES[row : row + 1])).collect()

    with pytest.raises(TaskError, match=rf"t-0 at offset 0: it .*{why}"):
        engine.run("json", run)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["TINYINT", "ARRAY<STRUCT<t: TINYINT>>"])
def test_a_number_that_is_too_large_for_a_tinyint_is_a_bad_row(engine: Embedded, kind: str) -> None:
    numbers = (-128, 127, 128, 255, -129, 256)
    texts = [str(each) if kind == "TINYINT" else f'[{{"t": {each}}}]' for each in numbers]
    values = tuple(f'{{"n": {each}, "s": "x"}}'.encode() for each in texts)

    def run(spark: Any) -> tuple[list[Any], dict[str, str]]:
        made = JsonDecoder(KafkaRows((), has_text_keys=False, separates_bad=True), f"n {kind}")
        rows = [row.n for row in made.decode(spark, records(values)).collect()]
        (rejects,) = made.rejects()
        assert rejects.count() == 4
        return rows, {row.position["offset"]: row.reason for row in rejects.frame.collect()}

    rows, letters = engine.run("json", run)
    assert rows == [-128, 127] if kind == "TINYINT" else [[(-128,)], [(127,)]]
    assert letters.keys() == {"2", "3", "4", "5"}
    assert {each.partition(" (")[0] for each in letters.values()} == {"column `n`"}
    strict = JsonDecoder(KafkaRows((), has_text_keys=False, separates_bad=False), f"n {kind}")
    with pytest.raises(TaskError, match="the record of t-0 at offset 0: it is no JSON object that"):
        engine.run("json", lambda spark: strict.decode(spark, records(values[2:3])).collect())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("1e400", "it has the number 1e400 in column `n`, which no DOUBLE holds"),
        ('"1x"', 'column `n` (STRUCT<N:DOUBLE>): For input string: "{"n":"1x"}"'),
    ],
)
def test_a_number_that_no_column_holds_is_told_with_its_column(
    engine: Embedded, value: str, why: str
) -> None:
    strict = JsonDecoder(
        KafkaRows((), has_text_keys=False, separates_bad=False), "n STRUCT<n: DOUBLE>"
    )
    one = records((f'{{"n":{{"n":{value}}}}}'.encode(),))
    with pytest.raises(TaskError) as told:
        engine.run("json", lambda spark: strict.decode(spark, one).collect())
    assert f"the record of t-0 at offset 0: {why}" in str(told.value)


@pytest.mark.spark
def test_tombstones_alone_have_the_columns_of_the_records_before(engine: Embedded) -> None:
    schema = {"type": "struct", "fields": [{"field": "n", "type": "int32"}]}
    full = json.dumps({"schema": schema, "payload": {"n": 1}}).encode()
    made = EnvelopeDecoder(KafkaRows(("_offset",), has_text_keys=False, separates_bad=False))

    def run(spark: Any) -> list[Any]:
        parts = ((full,), (None, b'{"schema":null,"payload":null}'))
        return [made.decode(spark, records(each)).toArrow().to_pylist() for each in parts]

    none = [{"n": None, "_offset": 0}, {"n": None, "_offset": 1}]
    assert engine.run("json", run) == [[{"n": 1, "_offset": 0}], none]


@pytest.mark.spark
def test_a_payload_without_a_schema_is_a_bad_row_and_no_tombstone(engine: Embedded) -> None:
    values = (b'{"schema":null,"payload":{"n":1}}', b'{"schema":{},"payload":1}')
    made = EnvelopeDecoder(KafkaRows((), has_text_keys=False, separates_bad=True))

    def run(spark: Any) -> tuple[int, list[str]]:
        rows: Any = made.decode(spark, records(values))
        return rows.num_rows, sorted(
            row.reason for each in made.rejects() for row in each.frame.collect()
        )

    count, told = engine.run("json", run)
    assert (count, len(told)) == (0, 2)
    assert told[0].startswith("its envelope has a payload without a schema")
    strict = EnvelopeDecoder(KafkaRows((), has_text_keys=False, separates_bad=False))
    with pytest.raises(BadInput, match="offset 0: its envelope has a payload without a schema"):
        engine.run("json", lambda spark: strict.decode(spark, records(values)))
