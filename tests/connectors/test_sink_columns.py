# pyright: basic
"""The columns of all files of a sink: kept, widened or refused, and what each batch is cast to."""

from pathlib import Path
from unittest.mock import MagicMock, Mock, call

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from fairlead.runtime.pipeline.spi.errors import SchemaRefused, SinkBroken
from fairlead.runtime.pipeline.stores.files.sink.columns import (
    align_columns,
    reconcile_columns,
)
from fairlead.runtime.pipeline.stores.files.sink.writing import WriteFormat
from fairlead.runtime.pipeline.stores.files.sink_folder.root import SinkLocation

INT, LONG, TEXT = IntegerType(), LongType(), StringType()


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def reconciled(root: Path, found: StructType, *, may_evolve: bool) -> StructType:
    place = SinkLocation(root, "a-cluster", "c", None)
    return reconcile_columns(root, place, found, may_evolve=may_evolve)


def test_the_first_batch_sets_the_columns_and_others_may_lack_some_of_them(tmp_path: Path) -> None:
    first = schema(n=INT, s=TEXT)
    for found in (first, first, schema(s=TEXT), schema(s=TEXT, n=INT)):
        assert reconciled(tmp_path, found, may_evolve=False) == first
    assert reconciled(tmp_path, first, may_evolve=False) == first


def test_columns_that_are_new_or_wider_are_refused_or_kept_for_all_that_come(
    tmp_path: Path,
) -> None:
    reconciled(tmp_path, schema(n=INT), may_evolve=False)
    wider = schema(n=LONG, s=TEXT)
    with pytest.raises(SchemaRefused) as caught:
        reconciled(tmp_path, wider, may_evolve=False)
    assert str(caught.value) == (
        f"the files in {tmp_path} have no column `s` STRING and a narrower column `n`, which is INT"
        " and now BIGINT: set sink.auto.evolve=true, remove it by a transform, or set another"
        " sink.path"
    )
    assert reconciled(tmp_path, schema(n=INT), may_evolve=False) == schema(n=INT)
    assert reconciled(tmp_path, wider, may_evolve=True) == wider
    assert reconciled(tmp_path, schema(n=INT), may_evolve=False) == wider


def test_a_type_that_no_other_holds_is_refused_and_so_is_a_schema_that_is_none(
    tmp_path: Path,
) -> None:
    reconciled(tmp_path, schema(n=ArrayType(INT)), may_evolve=True)
    with pytest.raises(SchemaRefused, match="was written with other types: column"):
        reconciled(tmp_path, schema(n=INT), may_evolve=True)
    (kept,) = tmp_path.glob("_fairlead/columns/*.json")
    kept.write_text("{}")
    with pytest.raises(SinkBroken, match=r"c--1\.json is corrupt: remove it, and the next batch"):
        reconciled(tmp_path, schema(n=INT), may_evolve=True)


def test_rows_that_have_the_columns_of_all_files_stay_as_they_are() -> None:
    frame, nested = Mock(), ArrayType(INT)
    same = schema(n=INT, a=nested)
    assert align_columns(frame, same, same) is frame
    assert align_columns(frame, same, schema(n=INT, a=ArrayType(LONG))) is frame, "as they are"


def test_other_rows_get_the_names_the_order_and_the_types_of_all_files() -> None:
    frame = MagicMock()
    n, s = MagicMock(name="n"), MagicMock(name="s")
    frame.__getitem__.side_effect = {"`N`": n, "`s`": s}.__getitem__
    found = align_columns(frame, schema(s=TEXT, N=INT), schema(n=LONG, s=TEXT))
    assert found is frame.select.return_value
    assert (n.cast.mock_calls[0], s.cast.mock_calls) == (call(LONG), [])
    aliased = n.cast.return_value.alias, s.alias
    assert frame.select.mock_calls == [call(*(each.return_value for each in aliased))]
    assert [each.mock_calls[0] for each in aliased] == [call("n"), call("s")]
    narrower = align_columns(frame, schema(s=DoubleType()), schema(s=TEXT))
    assert narrower is frame.select.return_value, "of the same names, but not of the same types"


@pytest.mark.parametrize(
    ("form", "options", "names", "partition_by", "null"),
    [
        ("csv", {}, ["a"], (), '""'),
        ("csv", {"quote": "'"}, ["a"], (), "''"),
        ("csv", {}, ["a", "day"], ("Day",), '""'),
        ("csv", {}, ["a", "b"], (), None),
        ("csv", {}, ["a", "b", "day"], ("day",), None),
        ("csv", {"nullvalue": "-"}, ["a"], (), "-"),
        ("json", {}, ["a"], (), None),
    ],
)
def test_a_null_in_csv_of_one_column_is_an_empty_text_and_no_empty_line(
    form: str, options: dict[str, str], names: list[str], partition_by: tuple[str, ...], null: str
) -> None:
    rows, made = Mock(**{"schema.names": names}), WriteFormat(form, partition_by, options)
    wanted = options if null is None else {**options, "nullvalue": null}
    assert made._options(rows) == wanted
