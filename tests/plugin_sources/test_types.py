"""Values of a plugin have the types that records with schemas have (formats/connect.py)."""
# pyright: basic

import base64
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.formats.connect import DECIMAL, PLAIN, TIMES
from fairlead.runtime.pipeline.spi.errors import FailedElsewhere
from fairlead_tests.plugins.source_driver import Driver, envelope, rows_of

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("plugins")]
SAMPLES: dict[str, tuple[object, object]] = {
    "int8": (7, 7),
    "int16": (-300, -300),
    "int32": (70_000, 70_000),
    "int64": (1 << 40, 1 << 40),
    "float": (0.5, 0.5),
    "double": (0.1, 0.1),
    "boolean": (True, True),
    "string": ("å", "å"),
    "bytes": (base64.b64encode(b"\0\xff").decode(), b"\0\xff"),
}
"""By the types that JSON has: what is written there, and the value."""
DAY, MS = 19_675, 1_700_000_000_123
OF_TIME = {
    pa.date32(): ("int32", DAY, date(2023, 11, 14)),
    pa.timestamp("ms", "UTC"): (
        "int64",
        MS,
        datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
    ),
    pa.timestamp("us", "UTC"): (
        "int64",
        MS * 1000 + 4,
        datetime(2023, 11, 14, 22, 13, 20, 123_004, tzinfo=UTC),
    ),
}


def field(at: str, kind: str, /, **more: Any) -> dict[str, Any]:
    return {"field": at, "type": kind, "optional": True, **more}


def one_row(driver: Driver, fields: list[dict[str, Any]], payload: dict[str, Any]) -> Any:
    """Return the table of one record."""
    value = envelope(payload, type="struct", fields=fields)
    driver.write([{"topic": "t", "value": value}])
    plan = driver.plan()
    return plan.ranges[0].drop_columns(["_topic"])


def test_plain_values_have_the_types_of_the_table(driver: Driver) -> None:
    fields = [field(f"a_{kind}", kind) for kind in SAMPLES]
    table = one_row(driver, fields, {f"a_{kind}": each[0] for kind, each in SAMPLES.items()})
    assert {each.name: each.type for each in table.schema} == {
        f"a_{kind}": PLAIN[kind] for kind in SAMPLES
    }
    (row,) = table.to_pylist()
    assert row == {f"a_{kind}": each[1] for kind, each in SAMPLES.items()}


def test_times_are_times_and_keep_the_name_of_their_schema(driver: Driver) -> None:
    fields, payload, expected = [], {}, {}
    for at, (name, kind) in enumerate(TIMES.items()):
        of_json, number, value = OF_TIME[kind]
        fields.append(field(f"t{at}", of_json, name=name, version=1))
        payload[f"t{at}"], expected[f"t{at}"] = number, value
    table = one_row(driver, fields, payload)
    assert table.to_pylist() == [expected]
    days = [each.type for each in table.schema if pa.types.is_date32(each.type)]
    times = [each.type for each in table.schema if pa.types.is_timestamp(each.type)]
    assert (len(days), {*times}) == (2, {pa.timestamp("us", "UTC")})
    names = [each.metadata[b"connect.name"].decode() for each in table.schema]
    assert names == [*TIMES]


def test_decimals_are_decimals_and_connects_time_of_day_is_a_number(driver: Driver) -> None:
    unscaled = base64.b64encode((-1250).to_bytes(2, signed=True)).decode()
    fields = [
        field("price", "bytes", name=DECIMAL, parameters={"scale": "2"}),
        field("at", "int32", name="org.apache.kafka.connect.data.Time"),
    ]
    table = one_row(driver, fields, {"price": unscaled, "at": 61_001})
    assert table.schema.field("price").type == pa.decimal128(38, 2)
    assert table.to_pylist() == [{"price": Decimal("-12.50"), "at": 61_001}]


def test_structs_arrays_and_maps_stay_what_they_are(driver: Driver) -> None:
    point = [field("x", "int32"), field("when", "int64", name="io.debezium.time.Timestamp")]
    number = {"type": "int32", "optional": True}
    fields = [
        field("point", "struct", fields=point),
        field("tags", "array", items={"type": "string", "optional": True}),
        field("counts", "map", keys={"type": "string"}, values=number),
        field("points", "array", items={"type": "struct", "optional": True, "fields": point}),
        field("nothing", "struct", fields=point),
    ]
    payload = {
        "point": {"x": 1, "when": MS},
        "tags": ["a", None],
        "counts": {"b": 2, "c": None},
        "points": [{"x": 3, "when": None}, None],
        "nothing": None,
    }
    (row,) = one_row(driver, fields, payload).to_pylist()
    when = OF_TIME[pa.timestamp("ms", "UTC")][2]
    assert row == {
        "point": {"x": 1, "when": when},
        "tags": ["a", None],
        "counts": [("b", 2), ("c", None)],
        "points": [{"x": 3, "when": None}, None],
        "nothing": None,
    }


def test_a_default_stands_for_a_value_that_is_missing(driver: Driver) -> None:
    table = one_row(driver, [field("n", "int32", default=5)], {"n": None})
    assert table.to_pylist() == [{"n": 5}]


def test_a_value_without_a_schema_is_its_text(driver: Driver) -> None:
    driver.write([{"topic": "t", "value": {"schema": None, "payload": {"a": [1, "b"]}}}])
    (row,) = rows_of(driver.plan())
    assert row["_value"] == '{"a":[1,"b"]}'


@pytest.mark.parametrize(
    ("kind", "payload", "told"),
    [
        (
            field("n", "int64", name="io.debezium.time.Timestamp"),
            1 << 62,
            "field n has a time that no timestamp holds",
        ),
        (
            field("n", "bytes", name=DECIMAL, parameters={"scale": "0"}),
            base64.b64encode((10**38).to_bytes(17)).decode(),
            "field n: a Decimal has at most 38 digits, not 39",
        ),
        (
            field("n", "map", keys={"type": "int32"}, values={"type": "int32"}),
            [[1, 2]],
            "field n is a map whose keys are no texts",
        ),
    ],
    ids=["time", "decimal", "map"],
)
def test_what_no_column_holds_is_told_with_its_field(
    driver: Driver, kind: dict[str, Any], payload: object, told: str
) -> None:
    with pytest.raises(FailedElsewhere, match=told):
        one_row(driver, [kind], {"n": payload})
