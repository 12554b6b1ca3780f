# pyright: basic
"""What the headers of a dead letter say, and the record that it becomes again."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.errors import LettersRefused
from fairlead.runtime.pipeline.stores.kafka.source.letters.decoding import (
    flaws_in,
    own_letters,
    restore_records,
)
from fairlead.runtime.pipeline.stores.kafka.source.letters.mark import letter_headers, read_letter
from fairlead.runtime.pipeline.stores.kafka.source.reader import HEADERS

QUEUE = "errors.deadletterqueue"
MARK = "__fairlead.letter"
OF_ERROR = {"connector.name": "c", "task.id": "0", "stage": "VALUE_CONVERTER"}
PLACE = {"topic": "t", "partition": "1", "offset": "7"}


def pairs(**more: str | None) -> list[dict[str, Any]]:
    """Return headers of Connect's context."""
    told = {name.replace("_", "."): text for name, text in more.items()}
    return [
        {"key": f"__connect.errors.{name}", "value": None if text is None else text.encode()}
        for name, text in told.items()
    ]


def mark(text: str = '{"format":"json","sent_ms":1000}') -> list[dict[str, Any]]:
    return [{"key": MARK, "value": text.encode()}]


def records(*headers: list[dict[str, Any]], value: bytes | None = b'{"n": 1}') -> pa.Table:
    """Return records of a topic of letters."""
    count = len(headers)
    return pa.table(
        {
            "_value": pa.array([value] * count, pa.binary()),
            "_key": pa.array([b"\xffk"] * count, pa.binary()),
            "_headers": pa.array(headers, HEADERS),
        }
    )


def own(*headers: list[dict[str, Any]], value: bytes | None = b'{"n": 1}') -> pa.Table:
    return own_letters("c", records(*headers, value=value))


def test_the_headers_of_the_record_end_at_the_last_mark_even_if_it_was_a_letter() -> None:
    of_record = [{"key": "a", "value": b"\xfe"}, {"key": "a", "value": None}, *mark("{}")]
    of_record += pairs(connector_name="other", topic="older")
    context = [(f"__connect.errors.{name}", text) for name, text in (OF_ERROR | PLACE).items()]
    letters = pa.table(
        {
            "format": ["csv"],
            "columns": [["s", "n"]],
            "sent_ms": pa.array([None], pa.int64()),
            "record_headers": pa.array([of_record], HEADERS),
            "headers": pa.array([context], pa.map_(pa.string(), pa.string())),
        }
    )
    (written,) = letter_headers(letters).to_pylist()
    letter = read_letter(written)
    assert (letter.connector, letter.position, letter.headers) == ("c", PLACE, of_record)
    assert letter.mark is not None
    assert (letter.mark.format, letter.mark.columns) == ("csv", ["s", "n"])
    assert letter.mark.sent_ms is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"sent_ms": -1}', '{"sent_ms": 1e300}', "\udcff"]
)
def test_a_mark_that_is_none_does_not_end_the_task(text: str) -> None:
    headers = [{"key": MARK, "value": text.encode(errors="surrogateescape")}]
    assert read_letter(headers).mark is None
    assert read_letter([{"key": MARK, "value": None}]).mark is None


def test_letters_of_others_are_left_out() -> None:
    other = mark() + pairs(connector_name="other", **PLACE)
    assert own([], other, pairs(stage="TASK_PUT"), mark()).num_rows == 0


def test_a_record_is_itself_again() -> None:
    header = {"key": "h", "value": b"\x00"}
    letters = own([header, *mark(), *pairs(**OF_ERROR_KEYS, **PLACE)], value=b"none \xfe")
    assert flaws_in(letters, are_records=True) == {}
    (record,) = restore_records(letters).to_pylist()
    assert record == {
        "_value": b"none \xfe",
        "_key": b"\xffk",
        "_topic": "t",
        "_partition": 1,
        "_offset": 7,
        "_timestamp": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "_headers": [header],
        "_fairlead_unread": None,
    }


OF_ERROR_KEYS = {name.replace(".", "_"): text for name, text in OF_ERROR.items()}


def test_what_does_not_say_how_it_is_read_is_refused_with_the_reason() -> None:
    of_c = pairs(**OF_ERROR_KEYS, **PLACE)
    letters = own(
        mark() + of_c,
        of_c,
        mark("{}") + of_c,
        mark() + of_c,
        mark() + pairs(**OF_ERROR_KEYS),
        mark() + pairs(**OF_ERROR_KEYS, **PLACE | {"offset": "9" * 5_000}),
        mark() + pairs(**OF_ERROR_KEYS, **PLACE | {"partition": str(1 << 31)}),
        mark('{"format":"row"}') + of_c,
    )
    flaws = flaws_in(letters, are_records=True)
    why = ["no header says", "its text is not the row", "has the same record"]
    why += ["do not say which record"] * 3
    assert [*flaws] == [1, 2, 3, 4, 5, 6]
    for told, expected in zip(flaws.values(), why, strict=True):
        assert expected in told
    assert flaws_in(letters, are_records=False).keys() == {1, 2}


@pytest.fixture
def config() -> dict[str, str]:
    """A config whose dead letters are in a topic."""
    return {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": "/in",
        "source.separator": ";",
        "source.option.comment": "#",
        "source.min.age.ms": "0",
        "source.schema": "n INT",
        "sink.format": "json",
        "sink.path": "/out",
        "errors.tolerance": "all",
        f"{QUEUE}.topic.name": "bad",
        f"{QUEUE}.context.headers.enable": "true",
        f"{QUEUE}.bootstrap.servers": "h:1",
        f"{QUEUE}.sasl.password": "x",
    }


def retry_of(config: dict[str, str]) -> dict[str, str]:
    made = dict(SparkPipeline.retry_config(config, {}, "c-retry"))
    assert SparkPipeline.validate(made).errors == {}
    return made


def of_source(config: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in config.items() if key.startswith("source.")}


def test_the_source_is_the_topic_with_the_format_of_the_files(config: dict[str, str]) -> None:
    made = retry_of(config)
    assert of_source(made) == {
        "source.type": "dead-letter-topic",
        "source.topics": "bad",
        "source.bootstrap.servers": "h:1",
        "source.sasl.password": "x",
        "source.connector": "c",
        "source.format": "csv",
        "source.separator": ";",
        "source.option.comment": "#",
        "source.schema": "n INT",
        "source.schema.is.inferred": "false",
    }
    assert made[f"{QUEUE}.topic.name"] == "bad-retry"
    again = dict(SparkPipeline.retry_config(made, {}, "c-retry-retry"))
    changed = {"source.topics": "bad-retry", "source.connector": "c-retry"}
    assert of_source(again) == of_source(made) | changed


def test_the_topic_in_the_cluster_of_the_source_stays_there(config: dict[str, str]) -> None:
    kafka = {"type": "kafka", "topics": "t", "bootstrap.servers": "s:1", "sasl.password": "y"}
    kafka |= {"value.converter": "json", "value.converter.schemas.enable": "false"}
    kafka |= {"metadata.columns": "key,headers", "schema": "n INT", "group.id.shadow": "g"}
    base = {key: text for key, text in config.items() if not key.startswith("source.")}
    base = {key: text for key, text in base.items() if "bootstrap" not in key}
    made = retry_of(base | {f"source.{key}": text for key, text in kafka.items()})
    decoding = {key: text for key, text in kafka.items() if "convert" in key or key == "schema"}
    assert of_source(made) == {
        **{f"source.{key}": text for key, text in decoding.items()},
        "source.type": "dead-letter-topic",
        "source.topics": "bad",
        "source.bootstrap.servers": "s:1",
        "source.sasl.password": "y",
        "source.connector": "c",
        "source.metadata.columns": "key,headers",
    }
    assert made[f"{QUEUE}.bootstrap.servers"] == "s:1"
    assert made[f"{QUEUE}.sasl.password"] == "y"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({f"{QUEUE}.context.headers.enable": "false"}, "do not say whose they are"),
        ({f"{QUEUE}.topic.name": "${env:X}"}, "which only workers resolve"),
        ({"source.type": "jdbc"}, "rows of source.type=jdbc have no columns"),
        (
            {
                "source.type": "kafka",
                "source.metadata.columns": "key",
                "source.key.converter": "json",
            },
            "only texts and bytes are read again",
        ),
        ({"source.type": "kafka", "source.value.converter": "avro"}, "avro cannot be read again"),
    ],
)
def test_it_is_said_why_a_topic_cannot_be_retried(
    config: dict[str, str], more: dict[str, str], told: str
) -> None:
    with pytest.raises(LettersRefused, match=told.replace("$", r"\$")):
        retry_of(config | more)
