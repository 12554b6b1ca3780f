# pyright: basic
"""Keys in JSON become a struct or a single value, beside values of any converter."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.errors import BadInput, NotReady
from fairlead_tests.kafka.pipes import Reading, source_config, source_type
from fairlead_tests.kafka.topics import Topics

pytestmark = pytest.mark.spark

CONNECT = "org.apache.kafka.connect.json.JsonConverter"
PLAIN = {"key_converter": "json", "key_converter_schemas_enable": "false"}
Rows = Callable[..., tuple[list[Any], list[Any]]]


@pytest.fixture
def rows(engine: Embedded, topics: Topics, topic: str) -> Iterator[Rows]:
    """Read one batch of the topic as a config says; return its keys, and its bad rows."""
    begun: list[Reading] = []

    def rows(errors: str = "none", **given: str) -> tuple[list[Any], list[Any]]:
        config = source_config(topics.bootstrap, topics=topic, metadata_columns="key", **given)
        letters_in = {"errors.deadletterqueue.path": "/bad", "errors.tolerance": errors}
        reading = Reading(config | letters_in)
        begun.append(reading)
        plan = reading.plan()

        def job(spark: Any) -> tuple[list[Any], list[Any]]:
            found = reading.take(plan, spark)
            keys = (found if hasattr(found, "to_pylist") else found.toArrow()).to_pylist()
            rejects = [
                (int(dict(each["position"])["offset"]), each["reason"])
                for part in reading.source.rejects()
                for each in part.frame.toArrow().to_pylist()
            ]
            return [each["_key"] for each in keys], rejects

        return engine.run("test", job)

    yield rows
    for each in begun:
        each.source.close()


def write(topics: Topics, topic: str, *keys: Any, value: str = "{}") -> None:
    """Write a record for each key: a text as it is, null, or an object as JSON."""
    for key in keys:
        text = key if key is None or isinstance(key, str | bytes) else json.dumps(key)
        topics.write(topic, [value], key=text)


def envelope(schema: Any, payload: Any) -> dict[str, Any]:
    return {"schema": schema, "payload": payload}


def struct(**fields: Any) -> dict[str, Any]:
    named = [{"field": name, **told} for name, told in fields.items()]
    return {"type": "struct", "fields": named}


@pytest.mark.parametrize("values", ["string", "json", "plain"])
def test_a_key_in_connects_envelope_is_a_struct_of_its_types(
    topics: Topics, topic: str, rows: Rows, values: str
) -> None:
    name = "org.apache.kafka.connect.data."
    schema = struct(
        id={"type": "int64"},
        day={"type": "int32", "name": f"{name}Date"},
        at={"type": "int64", "name": f"{name}Timestamp"},
        sum={"type": "bytes", "name": f"{name}Decimal", "parameters": {"scale": "2"}},
        raw={"type": "bytes"},
        some={"type": "array", "items": {"type": "string"}},
        inner=struct(n={"type": "double"}),
    )
    payload = {"id": 1 << 40, "day": 1, "at": 1500, "sum": b64encode(b"\xff\x85").decode()}
    payload |= {"raw": b64encode(b"\0\xff").decode(), "some": ["a"], "inner": {"n": 1}}
    value = json.dumps(envelope(struct(v={"type": "int32"}), {"v": 1}))
    write(topics, topic, envelope(schema, payload), None, value=value)
    converter = {"value_converter": "json" if values != "string" else "string"}
    if values == "plain":
        converter |= {"value_converter_schemas_enable": "false", "schema": "payload STRING"}
    found, bad = rows(key_converter=CONNECT, **converter)
    assert bad == []
    assert found[1] is None
    assert found[0] == {
        "id": 1 << 40,
        "day": date(1970, 1, 2),
        "at": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
        "sum": Decimal("-1.23"),
        "raw": b"\0\xff",
        "some": ["a"],
        "inner": {"n": 1.0},
    }


def test_keys_of_one_value_and_of_several_schemas_are_one_column(
    topics: Topics, topic: str, rows: Rows
) -> None:
    long = {"type": "int64"}
    write(topics, topic, envelope(long, 7), None, envelope({"type": "int32"}, 8))
    assert rows(key_converter="json") == ([7, None, 8], [])
    topics.cut(topic, 3)
    write(topics, topic, None)
    assert rows(key_converter="json") == ([None], [])
    topics.cut(topic, 4)
    one, two = struct(id=long), struct(id=long, who={"type": "string"})
    write(topics, topic, envelope(one, {"id": 1}), envelope(two, {"id": 2, "who": "w"}))
    write(topics, topic, envelope({"type": "string"}, "alone"))
    assert rows("all", key_converter="json") == (
        [{"id": 1, "who": None}, {"id": 2, "who": "w"}],
        [(6, "its key is of another type than earlier keys")],
    )


def test_plain_keys_have_the_fields_that_are_given_or_seen(
    topics: Topics, topic: str, rows: Rows
) -> None:
    write(topics, topic, {"id": 1, "day": "2024-02-29"}, {"id": 2})
    given = "id INT, day DATE, sum DECIMAL(5, 2)"
    assert rows(**PLAIN, key_schema=given)[0] == [
        {"id": 1, "day": date(2024, 2, 29), "sum": None},
        {"id": 2, "day": None, "sum": None},
    ]
    seen = [{"id": 1, "day": "2024-02-29"}, {"id": 2, "day": None}]
    assert rows(**PLAIN) == (seen, [])
    topics.cut(topic, 2)
    write(topics, topic, "5", None, "6")
    assert rows(**PLAIN) == ([5, None, 6], [])
    topics.cut(topic, 5)
    write(topics, topic, '"text"')
    assert rows(**PLAIN) == (["text"], [])


BAD = {
    "none": "its key is no JSON",
    '"\\ud800"': "its key escapes a lone surrogate",
    '{"id": "x"}': 'its key does not fit: "x" is no int32',
    '{"id": true}': "its key does not fit: true is no int32",
    '{"id": 1.5}': 'its key does not fit: "1.5" is no int32',
    '{"id": 3000000000}': "its key is too large for struct<id: int32>",
    "1": "its key does not fit: there is no object with id",
    '{"id": 1, "region": "eu"}': "its key has region as well, besides id",
    '{"id": 1} {"id": 2}': "its key has more text after its first JSON value",
}


def test_keys_that_cannot_be_decoded_end_the_batch_or_are_bad_rows(
    topics: Topics, topic: str, rows: Rows
) -> None:
    write(topics, topic, {"id": 1}, *BAD, {"id": 2})
    where = rf"the record of {topic}-0 at offset 1: its key is no JSON"
    with pytest.raises(BadInput, match=where):
        rows(**PLAIN, key_schema="id INT")
    found, bad = rows("all", **PLAIN, key_schema="id INT")
    assert found == [{"id": 1}, {"id": 2}]
    bad.sort()
    assert [offset for offset, _ in bad] == [*range(1, len(BAD) + 1)]
    for (_, why), expected in zip(bad, BAD.values(), strict=True):
        assert why.startswith(expected)


def test_a_key_that_no_double_can_hold_is_a_bad_row(topics: Topics, topic: str, rows: Rows) -> None:
    write(topics, topic, '{"d": 1e308}', '{"d": 1e400}')
    found, bad = rows("all", **PLAIN, key_schema="d DOUBLE")
    assert found == [{"d": 1e308}]
    assert bad == [(1, 'its key does not fit: "1E+400" is no double')]


def test_keys_without_a_usable_envelope_say_what_to_set(
    topics: Topics, topic: str, rows: Rows
) -> None:
    write(topics, topic, {"id": 1}, envelope({"type": "odd"}, 1), envelope({"type": "map"}, {}))
    found, bad = rows("all", key_converter="json")
    assert (found, [offset for offset, _ in bad]) == ([], [0, 1, 2])
    told = [why for _, why in bad]
    assert "set source.key.converter.schemas.enable=false if keys are plain JSON" in told[0]
    assert told[1].endswith("nothing is known of the type 'odd'")
    assert told[2].endswith("it is no schema of Connect's")


def test_plain_keys_of_a_topic_without_any_are_waited_for(topics: Topics, topic: str) -> None:
    config = source_config(topics.bootstrap, topics=topic, **PLAIN)
    with pytest.raises(NotReady, match=r"no record is there.* give source\.key\.schema"):
        source_type(config).split(1)
    source_type({**config, "source.metadata.columns": "topic"}).split(1)
