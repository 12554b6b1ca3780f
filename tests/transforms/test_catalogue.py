"""A config names transforms and predicates; their keys are checked as Connect checks them."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, EntryPoints

import pytest
from transforms.conftest import made

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.errors import PluginUnknown
from fairlead.runtime.pipeline.transforms.catalogue import make_chain
from fairlead.runtime.pipeline.transforms.connect.fields import InsertField
from fairlead.runtime.pipeline.transforms.connect.new_record_state import ExtractNewRecordState
from fairlead.runtime.pipeline.transforms.sql import Select
from fairlead.runtime.pipeline.transforms.types import GROUP, INSTALLED, find_transform

GOOD = {
    "name": "c",
    "connector.class": "SparkPipeline",
    "source.format": "csv",
    "source.path": "/in",
    "sink.format": "parquet",
    "sink.path": "/out",
    "transforms": "x",
}
STATIC = {"static.field": "s", "static.value": "v"}


def chain(kind: str, keys: Mapping[str, str], **others: str) -> dict[str, str]:
    config = {**GOOD, "transforms.x.type": kind, **others}
    return config | {f"transforms.x.{key}": value for key, value in keys.items()}


def table(name: str) -> dict[str, str]:
    return {f"lookup.{name}.path": "/x", f"lookup.{name}.format": "csv"}


def errors(config: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the keys of the transform `x`, and of predicates, by bare key."""
    found = SparkPipeline.validate(config).errors
    return {key.removeprefix("transforms.x."): "; ".join(texts) for key, texts in found.items()}


@pytest.mark.parametrize(
    "name",
    [
        "InsertField",
        "InsertField$Value",
        "InsertField$Key",
        "org.apache.kafka.connect.transforms.InsertField$Value",
    ],
)
def test_a_type_goes_by_connects_names(name: str) -> None:
    assert find_transform(name) is InsertField
    assert errors(chain(name, STATIC)) == {}


@pytest.mark.parametrize(
    "name", ["ExtractNewRecordState", "io.debezium.transforms.ExtractNewRecordState"]
)
def test_a_type_of_debezium_goes_by_its_name(name: str) -> None:
    assert find_transform(name) is ExtractNewRecordState
    assert errors(chain(name, {})) == {}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("InsertFeld", "did you mean InsertField?"),
        ("RegexRouter$Value", "did you mean RegexRouter?"),
        ("org.example.Thing", "there are Cast, "),
    ],
)
def test_a_type_that_is_not_there_is_told_as_connect_tells_it_and_with_the_nearest(
    name: str, told: str
) -> None:
    words = f"Class {name} could not be found. no transform {name} is installed here: {told}"
    assert errors(chain(name, {}))["type"].startswith(words)


@pytest.mark.parametrize(
    ("kind", "keys", "key"),
    [
        ("InsertField", {}, "static.field"),
        ("InsertField", {"static.field": "s"}, "static.value"),
        ("ReplaceField", {"include": "a,a"}, "include"),
        ("ReplaceField", {"exclude": "a,,b"}, "exclude"),
        ("ReplaceField", {"renames": "a"}, "renames"),
        ("ReplaceField", {"renames": "a:b:c"}, "renames"),
        ("MaskField", {}, "fields"),
        ("MaskField", {"fields": ""}, "fields"),
        ("MaskField", {"fields": "a", "replacement": ""}, "replacement"),
        ("HoistField", {"field": "a", "predicate": "p"}, "predicate"),
        ("ValueToKey", {"fields": "a,a"}, "fields"),
        ("ExtractField", {}, "field"),
        ("ExtractField", {"field": "a", "field.syntax.version": "V3"}, "field.syntax.version"),
        ("ExtractField", {"field": "`a", "field.syntax.version": "V2"}, "field"),
        ("HoistField$Key", {}, "field"),
        ("SetSchemaMetadata", {}, "schema.name"),
        ("SetSchemaMetadata", {"schema.version": "x"}, "schema.version"),
        ("Cast", {}, "spec"),
        ("Cast", {"spec": ""}, "spec"),
        ("Cast", {"spec": "a:bytes"}, "spec"),
        ("Cast", {"spec": "a:int8,int16"}, "spec"),
        ("Cast", {"spec": "a:b:int8"}, "spec"),
        ("TimestampConverter", {}, "target.type"),
        ("TimestampConverter", {"target.type": "date"}, "target.type"),
        ("TimestampConverter", {"target.type": "string"}, "format"),
        ("TimestampConverter", {"target.type": "string", "format": "YYYY"}, "format"),
        ("TimestampConverter", {"target.type": "string", "format": "yyyy'T"}, "format"),
        ("TimestampConverter", {"target.type": "unix", "unix.precision": "days"}, "unix.precision"),
        ("TimestampRouter", {"timestamp.format": "bbb"}, "timestamp.format"),
        ("RegexRouter", {"regex": "(", "replacement": "x"}, "regex"),
        ("RegexRouter", {"regex": "a"}, "replacement"),
        ("RegexRouter", {"regex": "a", "replacement": "x\\"}, "replacement"),
        ("DropHeaders", {"headers": ""}, "headers"),
        ("HeaderFrom", {"fields": "a", "headers": "a,b", "operation": "move"}, "headers"),
        ("HeaderFrom", {"fields": "a", "headers": "a", "operation": "MOVE"}, "operation"),
        ("InsertHeader", {"header": "h"}, "value.literal"),
        ("sql", {}, "query"),
        ("sql", {"query": "q", "lookup.a.path": "/x"}, "lookup.a.format"),
        ("sql", {"query": "q", **table("a b")}, "lookup.a b.path"),
        ("sql", {"query": "q", **table("Input")}, "lookup.Input.path"),
        ("sql", {"query": "q", "predicate": "p"}, "predicate"),
        ("select", {}, "columns"),
        ("expect", {}, "on.violation"),
        ("expect", {"expect.a": " "}, "expect.a"),
        ("expect", {"expect.a": "x > 0", "on.violation": "ignore"}, "on.violation"),
        ("dedupe", {}, "fields"),
        ("dedupe", {"fields": "a,a"}, "fields"),
        ("dedupe", {"fields": "a", "keep": "any"}, "keep"),
        ("ExtractNewRecordState", {"delete.handling.mode": "tombstone"}, "delete.handling.mode"),
        ("ExtractNewRecordState", {"drop.tombstones": "no"}, "drop.tombstones"),
        ("ExtractNewRecordState", {"add.headers": "a:b:c"}, "add.headers"),
        ("ExtractNewRecordState", {"drop.fields.header.name": "h"}, "drop.fields.header.name"),
        ("Filter", {"predicate": "p"}, "predicate"),
        ("Filter", {"negate": "true"}, "negate"),
        ("Filter", {"negate": "yes"}, "negate"),
    ],
)  # fmt: skip
def test_each_error_stands_under_the_key_to_change(
    kind: str, keys: dict[str, str], key: str
) -> None:
    assert set(errors(chain(kind, keys))) == {key}


@pytest.mark.parametrize(
    "regex", [r"\p{Alpha}+(?<x>a)\k<x>", "(?i)a(?s)b", r"\Qa(\E", "a++", "[a&&[^b]]", r"\h\R"]
)
def test_what_only_java_knows_in_a_regular_expression_is_taken(regex: str) -> None:
    assert errors(chain("RegexRouter", {"regex": regex, "replacement": "x"})) == {}


def test_predicates_have_keys_of_their_own() -> None:
    config = chain("Filter", {"predicate": "p"}, predicates="p,q")
    config |= {"predicates.p.type": "TopicNameMatches", "predicates.q.type": "HasHeaders"}
    found = errors(config)
    assert set(found) == {"predicates.p.pattern", "predicates.q.type"}
    assert found["predicates.q.type"].endswith("did you mean HasHeaderKey?")
    config |= {"predicates.p.pattern": "a", "predicates.q.type": "RecordIsTombstone"}
    assert errors(config) == {}


def test_the_keys_of_a_type_are_shown_with_connects_groups() -> None:
    config = chain("Cast", {"spec": "a:int8", "predicate": "p"}, predicates="p")
    config |= {"predicates.p.type": "HasHeaderKey", "predicates.p.name": "h"}
    shown = [each.definition for each in SparkPipeline.validate(config).checked]
    assert [(each.name, each.group, each.order) for each in shown if ": " in each.group] == [
        ("transforms.x.type", "Transforms: x", 0),
        ("transforms.x.plugin.version", "Transforms: x", 1),
        ("transforms.x.predicate", "Transforms: x", 2),
        ("transforms.x.negate", "Transforms: x", 3),
        ("transforms.x.spec", "Transforms: x", 4),
        ("transforms.x.replace.null.with.default", "Transforms: x", 5),
        ("predicates.p.type", "Predicates: p", 0),
        ("predicates.p.plugin.version", "Predicates: p", 1),
        ("predicates.p.name", "Predicates: p", 2),
    ]
    assert [each.name for each in shown if not each.documentation] == []


def test_the_tables_and_rules_that_a_user_names_are_keys() -> None:
    keys = {"query": "q", "lookup.a.path": "/a", "lookup.a.format": "csv"}
    validation = SparkPipeline.validate(chain("sql", keys))
    assert (validation.errors, validation.warnings) == ({}, ())
    names = {each.definition.name for each in validation.checked}
    assert {"transforms.x.lookup.a.path", "transforms.x.lookup.a.format"} <= names
    validation = SparkPipeline.validate(chain("expect", {"expect.a": "x > 0"}))
    assert (validation.errors, validation.warnings) == ({}, ())


def test_a_broken_entry_point_hurts_only_the_config_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = EntryPoints(
        [
            EntryPoint("gone", "no.such.module:Thing", GROUP),
            EntryPoint("odd", "pathlib:Path", GROUP),
            EntryPoint("list", f"{Select.__module__}:Select", GROUP),
        ]
    )
    monkeypatch.setitem(vars(INSTALLED), "_points", points)
    assert errors(chain("gone", {}))["type"] == (
        "Class gone could not be found. transform gone could not be loaded: "
        "ModuleNotFoundError: No module named 'no'"
    )
    assert errors(chain("odd", {}))["type"] == (
        "Class odd could not be found. "
        "transform odd could not be loaded: pathlib:Path is no Transform"
    )
    assert errors(chain("list", {"columns": "a"})) == {}
    assert isinstance(made("list", {"columns": "a"}), Select)
    with pytest.raises(PluginUnknown, match=r"did you mean gone\?"):
        find_transform("gonne")


def test_a_lookup_out_of_reach_is_refused() -> None:
    context = Context(Resource("c", 0), print)
    config = chain("sql", {"query": "q", "lookup.a.path": "\0", "lookup.a.format": "csv"})
    with pytest.raises(ConfigInvalid, match=r"lookup.a.path: '\\x00' is no path"):
        make_chain(config, context)
