# pyright: basic
"""How narrow the grammar of csv is, and why: what wider ones would take, readers take differently.

Each step is a text, or a form of one, that the grammar does not take. The rows that the two readers
have of it show why: they differ, or Arrow takes nothing, so that Spark reads the file after all.
Where both have the same rows the grammar could be wider, which nobody needed so far.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.formats.csv import grammar, proof
from fairlead.runtime.pipeline.stores.files.copies import FileSurvey
from fairlead_tests.arrow.both_readers import BothReaders, Found
from fairlead_tests.arrow.drawn_csv import Batch, ddl_of

pytestmark = pytest.mark.spark

Patch = Callable[[pytest.MonkeyPatch], None]
"""Makes the grammar wider."""
DIFFERENT, UNREAD, EQUAL = "different", "unread", "equal"


class Step(NamedTuple):
    """A wider form of a type's values."""

    kind: DataType
    pattern: str
    """The expression of what would be taken as well."""
    texts: Sequence[str]
    why: frozenset[str]
    """What the readers make of these texts."""


def step(kind: DataType, pattern: str, texts: str, *why: str) -> Step:
    return Step(kind, pattern, texts.split("|"), frozenset(why))


CENTS = DecimalType(10, 2)
LONG = DecimalType(38, 10)
STEPS = {
    "a digit more": step(IntegerType(), "[0-9]{10}", "2147483648|2147483647", UNREAD, EQUAL),
    "a plus": step(IntegerType(), "[+][0-9]", "+1", UNREAD),
    "blanks": step(IntegerType(), " ?[0-9] ?", " 1|1 ", DIFFERENT),
    "a base of 16": step(IntegerType(), "0x[0-9A-F]+", "0x1F", DIFFERENT),
    "a digit more than a DECIMAL has": step(CENTS, "[0-9]{9}", "123456789", DIFFERENT),
    "a fraction with a digit more": step(CENTS, r"1\.005", "1.005", UNREAD),
    "an exponent in a DECIMAL": step(LONG, "[0-9]e[0-9]+", "1e30", DIFFERENT),
    "an exponent with three digits": step(
        DoubleType(), "-?[0-9]e-?[0-9]{3}", "1e400|-1e400|1e-400|1e200", DIFFERENT, EQUAL
    ),
    "words for no number": step(DoubleType(), "[a-zA-Z]+", "nan|inf|INF", DIFFERENT),
    "an exponent in a FLOAT": step(FloatType(), "1e-?[0-9]{2}", "1e39|1e-46", DIFFERENT),
    "other words": step(BooleanType(), "[a-z0-9]+", "1|t|yes", UNREAD),
    "a 29th of February": step(DateType(), "2023-02-29", "2023-02-29", UNREAD),
    "a year before 1000": step(DateType(), "[0-9-]+", "0999-12-31|0001-01-01", EQUAL),
    "a date with a time": step(DateType(), "[0-9-]+ 00:00:00", "2013-01-01 00:00:00", UNREAD),
    "a zone without seconds": step(TimestampType(), ".*Z", "2013-01-01 10:00Z", DIFFERENT),
    "an offset of 18 hours": step(
        TimestampType(), r".*\+18:00", "2013-01-01 10:00:00+18:00", EQUAL
    ),
    "an offset beyond": step(
        TimestampType(), r".*\+1[89]:.*", "2013-01-01 10:00:00+18:01", DIFFERENT
    ),
    "a seventh digit": step(TimestampNTZType(), ".*", "2013-01-01 10:00:00.1234567", UNREAD),
    "an offset that is dropped": step(TimestampNTZType(), ".*Z", "2013-01-01 10:00:00Z", UNREAD),
}


def widely(reader: BothReaders, patch: Patch) -> list[FileSurvey]:
    """Return the surveys of files that a wider grammar proves; Spark's way knows nothing of it."""
    real = grammar.record_pattern
    real.cache_clear()
    try:
        with pytest.MonkeyPatch.context() as wide:
            patch(wide)
            return reader.surveys()
    finally:
        real.cache_clear()


def values_of(
    spark: Any, folder: Path, steps: Mapping[str, Step], patch: Patch
) -> Iterator[tuple[str, str, object, object]]:
    """Yield steps and texts, and what Arrow and Spark make of each."""
    kinds = [*dict.fromkeys(each.kind for each in steps.values())]
    fields = [StructField(f"v{number}", kind) for number, kind in enumerate(kinds)]
    schema = StructType([StructField("k", IntegerType()), *fields])
    texts = [(name, text) for name, each in steps.items() for text in each.texts]
    files = []
    for number, (name, text) in enumerate(texts):
        cells = [text if kind == steps[name].kind else "" for kind in kinds]
        files.append(",".join(["k", *schema.names[1:]]) + f"\n{number},{','.join(cells)}\n")
    config = {"source.schema": ddl_of(schema), "errors.tolerance": "all"}
    batch = Batch(config, schema, "UTC", [each.encode() for each in files])
    reader = BothReaders(spark, batch, folder)
    surveys = widely(reader, patch)
    assert len(surveys) == len(texts)  # the wider grammar takes them all
    by_spark = {row[0]: row for row in reader.by_spark(surveys)}
    for number, ((name, text), survey) in enumerate(zip(texts, surveys, strict=True)):
        try:
            (by_arrow,) = reader.by_arrow([survey])
        except pa.ArrowException:
            yield name, text, UNREAD, None
        else:
            yield name, text, by_arrow, by_spark.get(number)


def test_each_step_beyond_the_grammar_is_read_differently_or_not_at_all(
    engine: Embedded, tmp_path: Path
) -> None:
    plain = grammar._plain

    def wider(form: grammar.PlainForm, kind: DataType) -> Iterator[str]:
        yield from plain(form, kind)
        yield from (each.pattern for each in STEPS.values() if each.kind == kind)

    patch = of_names(grammar, _plain=wider)
    read = engine.run("steps", lambda spark: [*values_of(spark, tmp_path, STEPS, patch)])
    found: dict[str, set[str]] = {}
    for name, _, arrow, spark in read:
        verdict = UNREAD if arrow == UNREAD else EQUAL if arrow == spark else DIFFERENT
        found.setdefault(name, set()).add(verdict)
    assert found == {name: set(each.why) for name, each in STEPS.items()}, read


INT, TEXT = IntegerType(), StringType()


def of_texts(pattern: str) -> Patch:
    """Take other texts in columns of texts."""
    value = grammar._value

    def wider(form: grammar.PlainForm, column: StructField) -> str:
        is_text = isinstance(column.dataType, StringType)
        return pattern if is_text else value(form, column)

    return lambda patch: patch.setattr(grammar, "_value", wider)


def of_records(old: str, new: str) -> Patch:
    """Take other records."""
    pattern = grammar.record_pattern

    def wider(form: grammar.PlainForm, columns: StructType) -> str:
        return pattern(form, columns).replace(old, new)

    return lambda patch: patch.setattr(proof, "record_pattern", wider)


def of_forms(**changes: Any) -> Patch:
    """Take records for those of another form."""
    pattern = grammar.record_pattern

    def wider(form: grammar.PlainForm, columns: StructType) -> str:
        return pattern(replace(form, **changes), columns)

    return lambda patch: patch.setattr(proof, "record_pattern", wider)


def of_names(module: Any, **names: object) -> Patch:
    """Put other values for names of a module."""

    def patch_all(patch: pytest.MonkeyPatch) -> None:
        for name, value in names.items():
            patch.setattr(module, name, value)

    return patch_all


class Shape(NamedTuple):
    """A grammar that takes other records, and a text of such ones."""

    patch: Patch
    text: bytes
    kinds: Sequence[DataType] = (INT, TEXT)
    config: tuple[tuple[str, str], ...] = ()
    zone: str = "UTC"
    schema_key: str = "source.schema"
    """The key of a schema that was given, or inferred."""


SHAPES = {
    "a lone quote": Shape(of_texts("[^,\r\n]*"), b'a,b\n1,x"y\n2,"x"y\n'),
    "a carriage return": Shape(of_texts("[^,\n]*"), b"a,b\n1,x\ry\n"),
    "a blank line": Shape(of_records(r"\A(?:", r"\A(?:\n|"), b"a,b\n1,x\n\n2,y\n"),
    "one column": Shape(of_names(grammar, _FEWEST=1), b"a\nx\n\ny\n", (TEXT,)),
    '`""` with a null text': Shape(
        of_forms(has_empty=True), b'a,b\n1,""\n', config=(("source.null.values", "NA"),)
    ),
    "a code": Shape(of_forms(is_inferred=False), b"a,b\n01,x\n", schema_key="task.schema"),
    "a time of a zone": Shape(
        lambda patch: (
            patch.setattr(proof, "_UTC", {"America/New_York"}),
            patch.setattr(grammar, "has_changes", lambda _: False),
        )[0],
        b"a,b\n1,2026-03-08 02:30:00\n",
        (INT, TimestampType()),
        zone="America/New_York",
    ),
    "a pair of bytes for an escape": Shape(
        of_texts(r'(?:[^",\r\n]*|"(?:[^"\r\n]|"")*")'),
        b'a,b\n1,"x\\"",y"\n',
        config=(("source.escape", "\\"),),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_other_records_than_those_of_the_grammar_are_read_differently(
    engine: Embedded, tmp_path: Path, name: str
) -> None:
    shape = SHAPES[name]
    fields = [StructField(one, kind) for one, kind in zip("ab", shape.kinds, strict=False)]
    schema = StructType(fields)
    given = {shape.schema_key: ddl_of(schema), "errors.tolerance": "all"}
    batch = Batch(given | dict(shape.config), schema, shape.zone, [shape.text])

    def compare(spark: Any) -> tuple[int, Found]:
        reader = BothReaders(spark, batch, tmp_path)
        return len(reader.surveys()), reader.compare(widely(reader, shape.patch))

    narrow, found = engine.run("shapes", compare)
    assert (narrow, found.proved) == (0, 1)
    assert len(found.differences) + len(found.unread) == 1
