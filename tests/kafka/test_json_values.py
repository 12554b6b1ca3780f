# pyright: basic
"""Values in JSON that Kafka's own converter refuses, or that nobody can keep, are bad records."""

from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.connectors.kafka.source.decoding import JsonDecoder, KafkaRows
from fairlead.runtime.pipeline.spark.embedded import Embedded
from fairlead.runtime.pipeline.spark.engine import TaskError

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


def decoder(*, parts_bad: bool) -> JsonDecoder:
    return JsonDecoder(KafkaRows((), has_text_keys=False, parts_bad=parts_bad), "n INT, s STRING")


@pytest.mark.spark
def test_lone_surrogates_single_quotes_and_what_is_nested_too_deep_are_bad_rows(
    engine: Embedded,
) -> None:
    made = decoder(parts_bad=True)

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
        decoder(parts_bad=False).decode(spark, records(VALUES[row : row + 1])).collect()

    with pytest.raises(TaskError, match=rf"t-0 at offset 0: it .*{why}"):
        engine.run("json", run)
