"""What becomes of a record is known from its columns alone, without Spark."""

import pytest
from pyspark.sql.types import (
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)
from transforms.conftest import made

from fairlead.runtime.pipeline.engines.spelling import literal, quoted
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.transforms.connect.record_transform import RecordTransform

INNER = StructType([StructField("b", IntegerType())])
SCHEMA = StructType(
    [
        StructField("a", IntegerType()),
        StructField("B", StringType()),
        StructField("in", INNER),
        StructField("m", MapType(StringType(), StringType())),
    ]
)


def select_list(kind: str, schema: StructType, **others: str) -> list[str]:
    keys = {each: others.pop(each) for each in list(others) if not each.startswith("predicates")}
    transform = made(kind, {key.replace("_", "."): each for key, each in keys.items()}, **others)
    assert isinstance(transform, RecordTransform)
    return transform.made_of(schema).select_list


@pytest.mark.parametrize(
    ("kind", "keys", "told"),
    [
        ("InsertField", {"offset_field": "o"}, "no column _offset with the offset in Kafka"),
        ("InsertField", {"timestamp_field": "o"}, "records from Kafka have it"),
        ("InsertField$Key", {"topic_field": "o"}, "no column _key"),
        ("InsertField", {"static_field": "b", "static_value": ""}, "have b and B: give one"),
        ("InsertField", {"static_field": "_key", "static_value": ""}, "_key is kept for the key"),
        ("ReplaceField", {"exclude": "a,B,in,m"}, "no column would be left"),
        ("ReplaceField", {"renames": "a:B"}, "two fields would have one name"),
        ("MaskField", {"fields": "in"}, "in is struct<b:int>: that has no mask"),
        ("MaskField", {"fields": "m", "replacement": "x"}, "has no mask with a replacement"),
        ("MaskField", {"fields": "a", "replacement": "x"}, "x is no number"),
        ("ValueToKey", {"fields": "A"}, "has no field A; it has a, B, in, m"),
        ("ExtractField", {"field": "A"}, "unknown field A; there are a, B, in, m"),
        ("ExtractField$Key", {"field": "a"}, "no column _key"),
        ("Flatten", {}, "m is a map"),
        ("Cast", {"spec": "in:string"}, "in cannot be cast from struct<b:int> to string"),
        ("TimestampConverter", {"field": "a", "target_type": "Date"}, "no type that a time"),
        ("TimestampRouter", {}, "no column _topic"),
        ("DropHeaders", {"headers": "h"}, "no column _headers"),
        ("HeaderFrom", {"fields": "x", "headers": "h", "operation": "copy"}, "no field x"),
    ],
)
def test_columns_that_do_not_fit_are_refused_with_the_name_of_the_transform(
    kind: str, keys: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        select_list(kind, SCHEMA, **keys)
    assert str(refused.value).startswith("transforms.x: ")
    assert told in str(refused.value)


def test_where_a_predicate_holds_not_the_record_stays_as_it_was() -> None:
    schema = StructType([*SCHEMA.fields[:2], StructField("_topic", StringType())])
    others = {"predicates": "p", "predicates.p.type": "TopicNameMatches"}
    others |= {"predicates.p.pattern": "t", "predicate": "p"}
    condition = "coalesce(`_topic` RLIKE CAST(X'{}' AS STRING), false)".format(rb"\A(?:t)\z".hex())
    assert select_list("ReplaceField", schema, renames="a:c", **others) == [
        f"IF({condition}, `a`, NULL) AS `c`",
        "`B` AS `B`",
        "`_topic` AS `_topic`",
        f"IF({condition}, NULL, `a`) AS `a`",
    ]
    with pytest.raises(ConfigInvalid, match="a would be string where the predicate holds and int"):
        select_list("Cast", schema, spec="a:string", **others)


def test_a_predicate_without_its_column_is_refused() -> None:
    others = {"predicates": "p", "predicates.p.type": "HasHeaderKey", "predicates.p.name": "h"}
    with pytest.raises(ConfigInvalid, match="no column _headers"):
        select_list("Filter", SCHEMA, predicate="p", **others)


def test_names_and_texts_are_spelled_so_that_nothing_in_them_counts() -> None:
    assert quoted("a`b") == "`a``b`"
    assert literal("plain ü") == "'plain ü'"
    assert literal("it's") == "CAST(X'69742773' AS STRING)"
    assert literal("\\") == "CAST(X'5c' AS STRING)"
