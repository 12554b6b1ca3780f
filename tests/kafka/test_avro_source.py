# pyright: basic
"""Keys and values in Avro, by schemas of a registry (the small one of the tests)."""

import datetime as dt
import decimal
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.errors import BadInput, NotReady, SchemaRefused, SourceAway
from fairlead_tests.kafka.pipes import Reading, source_config, source_type
from fairlead_tests.kafka.schema_registry import SchemaRegistryServer, framed, record
from fairlead_tests.kafka.topics import Topics

pytestmark = pytest.mark.spark

AVRO = {"value_converter": "io.confluent.connect.avro.AvroConverter"}
FEW = {"metadata_columns": "offset"}
TEXT_OR_NONE = ["null", "string"]


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    registry = SchemaRegistryServer()
    yield registry
    registry.down()


class Avro:
    """A topic whose records are in Avro, and what a source makes of it."""

    def __init__(self, engine: Embedded, topics: Topics, topic: str, url: str) -> None:
        self.engine, self.topics, self.topic, self.url = engine, topics, topic, url
        self.begun: list[Reading] = []

    def config(self, errors: str = "none", **given: str) -> dict[str, str]:
        url = {"value_converter_schema_registry_url": self.url}
        all_given = {**FEW, **AVRO, **url, "topics": self.topic, **given}
        config = source_config(self.topics.bootstrap, **all_given)
        return config | {"errors.tolerance": errors, "errors.deadletterqueue.path": "/bad"}

    def reading(self, errors: str = "none", **given: str) -> Reading:
        self.begun.append(Reading(self.config(errors, **given)))
        return self.begun[-1]

    def read(self, reading: Reading) -> Any:
        """Return the rows of the next batch, and its bad ones by their offsets."""
        plan = reading.plan()

        def job(spark: Any) -> Any:
            found = reading.take(plan, spark)
            rejects = [
                each
                for part in reading.source.rejects()
                for each in part.frame.toArrow().to_pylist()
            ]
            rows = found if hasattr(found, "to_pylist") else found.toArrow()
            bad = [(int(dict(each["position"])["offset"]), each["reason"]) for each in rejects]
            return rows.to_pylist(), bad

        return self.engine.run("test", job)

    def rows(self, errors: str = "none", **given: str) -> Any:
        return self.read(self.reading(errors, **given))


@pytest.fixture
def avro(
    engine: Embedded, topics: Topics, topic: str, registry: SchemaRegistryServer
) -> Iterator[Avro]:
    avro = Avro(engine, topics, topic, registry.url)
    yield avro
    for each in avro.begun:
        each.source.close()


def logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


def test_every_type_and_every_logical_type_becomes_a_column(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    inner = record(("at", ["null", logical("long", "timestamp-millis")]), name="Inner")
    schema = record(
        ("n", "long"),
        ("name", TEXT_OR_NONE),
        ("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
        ("raw", {"type": "fixed", "name": "Raw", "size": 2}),
        ("amount", logical("bytes", "decimal", precision=64, scale=2)),
        ("day", logical("int", "date")),
        ("time", logical("int", "time-millis")),
        ("micros", logical("long", "timestamp-micros")),
        ("local", logical("long", "local-timestamp-millis")),
        ("uuid", logical("string", "uuid")),
        ("parts", {"type": "array", "items": inner}),
        ("tags", {"type": "map", "values": "int"}),
        ("more", ["null", "Inner"]),
    )
    at = dt.datetime(2024, 2, 29, 12, 0, 0, 123_000, tzinfo=dt.UTC)
    amount, uuid = (
        decimal.Decimal("12345678901234567890.25"),
        "6c7c8a0e-1f1c-4a3e-9c1b-000000000001",
    )
    value = {
        "n": 2**40,
        "name": None,
        "kind": "B",
        "raw": b"\0\1",
        "amount": amount,
        "day": at.date(),
        "time": at.time(),
        "micros": at,
        "local": at.replace(tzinfo=None),
        "uuid": uuid,
        "parts": [{"at": at}, {"at": None}],
        "tags": {"x": 1},
        "more": {"at": at},
    }
    number = registry.add(f"{avro.topic}-value", schema)
    avro.topics.write(avro.topic, [framed(number, schema, value), None])
    (row, tombstone), _ = avro.rows()
    assert row == {
        **value,
        "_offset": 0,
        "parts": [{"at": at}, {"at": None}],
        "time": "12:00:00.123",
        "tags": [("x", 1)],
    }
    assert tombstone == dict.fromkeys(value, None) | {"_offset": 1}
    assert registry.asked.count(f"/schemas/ids/{number}") == 1


def test_records_of_several_schemas_keep_their_order_and_new_columns_go_by_the_policy(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    old = record(("n", "int"))
    first = registry.add(f"{avro.topic}-value", old)
    reading = avro.reading()
    avro.topics.write(avro.topic, [framed(first, old, {"n": 1})])
    assert avro.read(reading)[0] == [{"n": 1, "_offset": 0}]
    new = record(("n", "long"), ("name", TEXT_OR_NONE))
    second = registry.add(f"{avro.topic}-value", new)
    values = [framed(second, new, {"n": 2**40, "name": "x"}), framed(first, old, {"n": 3})]
    avro.topics.write(avro.topic, values)
    with pytest.raises(SchemaRefused, match=rf"{avro.topic}-0 at offset 1: .*`name` STRING.*`n`"):
        avro.read(reading)
    given = {"schema": "n INT"}
    assert avro.rows("all", **given)[1] == [
        (
            1,
            "a value does not fit its column: Integer value 1099511627776 not in range: "
            "-2147483648 to 2147483647",
        )
    ]
    widened = avro.rows(**given, schema_evolution="widen")[0]
    assert widened == [
        {"n": 1, "name": None, "_offset": 0},
        {"n": 2**40, "name": "x", "_offset": 1},
        {"n": 3, "name": None, "_offset": 2},
    ]
    rows, bad = avro.rows(**given, schema_evolution="dead-letter")
    assert [row["_offset"] for row in rows] == [0, 2]
    assert [offset for offset, _ in bad] == [1]
    latest = avro.rows()[0]
    assert latest == widened


def test_bytes_that_are_not_what_they_say_end_the_batch_or_are_bad_rows(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    schema = record(("name", "string"))
    number = registry.add(f"{avro.topic}-value", schema)
    other = registry.add("others", '{"type": "object"}', schemaType="JSON")
    good = framed(number, schema, {"name": "x"})
    bad = {
        good[:-1]: "it is not what its schema says: ",
        good + b"\0": "it is not what its schema says: 1 bytes are left over",
        good[:6] + b"\xff": "it is not what its schema says: 'utf-8' codec can't decode",
        b"": "it does not begin with a 0 and a schema's id",  # as Confluent's converter has it
        b"\0\0": "it does not begin with a 0 and a schema's id, as records of a registry do",
        b'{"name": "x"}': "it does not begin with a 0 and a schema's id",
        b"\0\0\0\0\7": "the schema registry has no schema 7",
        b"\0" + other.to_bytes(4): f"schema {other} cannot be used: it is JSON, not Avro",
    }
    avro.topics.write(avro.topic, [good, *bad, good])
    with pytest.raises(
        BadInput, match=rf"the record of {avro.topic}-0 at offset 1: it is not what"
    ):
        avro.rows()
    rows, found = avro.rows("all")
    assert rows == [{"name": "x", "_offset": 0}, {"name": "x", "_offset": len(bad) + 1}]
    assert [offset for offset, _ in found] == [*range(1, len(bad) + 1)]
    for (_, why), expected in zip(found, bad.values(), strict=True):
        assert why.startswith(expected)


def test_a_time_that_no_timestamp_holds_is_a_bad_row_and_columns_that_clash_are_told(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    schema = record(("at", logical("long", "timestamp-millis")))
    number = registry.add(f"{avro.topic}-value", schema)
    late = 9_223_372_036_825_200_000
    values = [framed(number, record(("at", "long")), {"at": each}) for each in (0, late, -late)]
    avro.topics.write(avro.topic, values)
    rows, bad = avro.rows("all")
    assert [row["at"].timestamp() for row in rows] == [0]
    assert [(offset, "column" in why) for offset, why in bad] == [(1, True), (2, True)]
    clashing = record(("id", "int"), ("ID", "int"))
    registry.add(f"{avro.topic}-value", clashing)
    with pytest.raises(ConfigInvalid, match="the columns `id` and `ID` have one name"):
        avro.rows()
    registry.add(f"{avro.topic}-value", record(("_offset", "int")))
    with pytest.raises(ConfigInvalid, match="the columns `_offset` and `_offset` have one name"):
        avro.rows()


def test_keys_in_avro_stand_beside_values_of_any_converter(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    url = {"key_converter_schema_registry_url": registry.url, "metadata_columns": "key"}
    given = {"key_converter": "avro", **url}
    schema = record(("id", "int"))
    number = registry.add(f"{avro.topic}-key", schema)
    avro.topics.write(avro.topic, ["{}"], key=framed(number, schema, {"id": 7}))
    avro.topics.write(avro.topic, ['{"n": 1}'], key=b"none")
    rows, bad = avro.rows("all", **given, value_converter="string")
    assert rows == [{"_value": "{}", "_key": {"id": 7}}]
    assert [offset for offset, _ in bad] == [1]
    plain = {"value_converter": "json", "value_converter_schemas_enable": "false"}
    rows, bad = avro.rows("all", **given, **plain, schema="n INT")
    assert (rows, [offset for offset, _ in bad]) == ([{"n": None, "_key": {"id": 7}}], [1])


def test_a_union_of_several_types_is_a_struct_with_a_field_for_each_as_in_connect(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    place = record(("city", ["string", "int"]), name="a.Place")
    kinds = [
        "int",
        "null",
        "long",
        "string",
        place,
        {"type": "enum", "name": "E", "symbols": ["P"]},
    ]
    kinds += [{"type": "array", "items": ["null", "int", "a.Place"]}]
    at = [logical("long", "timestamp-millis"), logical("bytes", "decimal", precision=4, scale=2)]
    schema = record(("of", kinds), ("at", at), ("again", TEXT_OR_NONE))
    schema["fields"][0]["default"] = 0
    noon, cents = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), decimal.Decimal("1.25")
    city: Any = {"city": "Oslo"}
    told = [1, None, 2**40, "s", ("a.Place", city), ("E", "P"), [7, None, ("a.Place", city)]]
    number = registry.add(f"{avro.topic}-value", schema)
    values = [{"of": each, "at": noon, "again": "x"} for each in told] + [{"of": 2, "at": cents}]
    avro.topics.write(avro.topic, [framed(number, schema, each) for each in values])
    rows = avro.rows()[0]

    def is_set(struct: Any) -> Any:
        return struct and {key: each for key, each in struct.items() if each is not None}

    place = {"city": {"string": "Oslo", "int": None}}
    items = [{"int": 7, "Place": None}, None, {"int": None, "Place": place}]
    assert [is_set(row["of"]) for row in rows] == [
        *({"int": 1}, None, {"long": 2**40}, {"string": "s"}),
        *({"Place": place}, {"E": "P"}, {"array": items}, {"int": 2}),
    ]
    assert [*rows[0]["of"]] == ["int", "long", "string", "Place", "E", "array"]
    assert [is_set(rows[each]["at"]) for each in (0, -1)] == [{"long": noon}, {"bytes": cents}]
    assert [rows[each]["again"] for each in (0, -1)] == ["x", None]


def test_columns_are_those_of_the_subject_once_and_schemas_may_refer_to_others(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    config = avro.config()
    with pytest.raises(NotReady, match=f"has no subject {avro.topic}-value"):
        source_type(config).split(1)
    registry.add("place", record(("city", "string"), name="a.Place"))
    refers = [{"name": "a.Place", "subject": "place", "version": 1}]
    schema = record(("n", "int"), ("at", "a.Place"))
    registry.add(f"{avro.topic}-value", schema, references=refers)
    (share,) = source_type(config).split(1)
    assert share["task.kafka.schema"] == "`n` INT, `at` STRUCT<`city`: STRING>"
    registry.add(f"{avro.topic}-value", record(("n", "int")))
    (kept,) = source_type(config, ({**config, **share},)).split(1)
    assert kept == share
    twins = [record(name="a.Twin"), record(name="b.twin")]
    registry.add(f"{avro.topic}-value", record(("n", twins)))
    with pytest.raises(ConfigInvalid, match="a union are no fields by their names: Twin, twin"):
        source_type(config).split(1)
    by_record = avro.config(value_converter_value_subject_name_strategy="x.RecordNameStrategy")
    number = registry.add("Order", record(("only", "int")))
    avro.topics.write(avro.topic, [framed(number, record(("only", "int")), {"only": 1})])
    (share,) = source_type(by_record).split(1)
    assert share["task.kafka.schema"] == "`only` INT"


def test_a_registry_that_is_away_is_waited_for_and_who_it_does_not_let_in_is_told(
    avro: Avro, registry: SchemaRegistryServer
) -> None:
    schema = record(("n", "int"))
    number = registry.add(f"{avro.topic}-value", schema)
    reading = avro.reading()
    avro.topics.write(avro.topic, [framed(number, schema, {"n": 1})])
    registry.down()
    with pytest.raises(SourceAway, match=f"the schema registry at {registry.url}: .*refused"):
        avro.read(reading)
    with pytest.raises(NotReady, match=r"the schema registry at .*refused"):
        source_type(avro.config()).split(1)
    registry.up()
    registry.user_info = "reader:open sesame"
    user = "value_converter_schema_registry_basic_auth_user_info"
    with pytest.raises(ConfigInvalid) as told:
        avro.rows(**{user: "reader:guess again"})
    assert str(told.value) == (
        "source.value.converter.schema.registry.basic.auth.user.info: the schema registry at "
        f"{registry.url} does not let this user in: 401 Unauthorized"
    )
    assert avro.rows(**{user: "reader:open sesame"})[0] == [{"n": 1, "_offset": 0}]


def test_the_registrys_address_is_asked_for_and_holds_no_password(avro: Avro) -> None:
    key = "source.value.converter.schema.registry.url"
    (told,) = SparkPipeline.validate(avro.config() | {key: ""}).errors[key]
    assert told == "source.value.converter needs the address of its schema registry"
    (told,) = SparkPipeline.validate(avro.config() | {key: "http://me:secret@host"}).errors[key]
    assert "set it in basic.auth.user.info, which is encrypted" in told
    defined = keys.SOURCE_TYPES.find("kafka").keys()
    secrets = {each.name for each in defined if each.type.value == "PASSWORD"}
    assert key.replace("url", "basic.auth.user.info") in secrets
