# pyright: basic
"""Columns that folders name, as Hive, Spark, Athena and the files sink write them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from connectors.conftest import Run

from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.stores.files.folders import folder_columns, folder_names
from fairlead_tests.soaks import thinned

Config = dict[str, str]


def test_columns_are_what_stands_before_the_mark_and_other_folders_name_none() -> None:
    path = "a=b/plain/day%3Dof=2026%3A1=x/c=d.csv"
    found = folder_columns(path)
    assert [tuple(each) for each in found] == [("a", "a=b"), ("day=of", "day%3Dof=2026%3A1=x")]
    assert folder_names([path, "A=2/x.csv", "x.csv", "=/x.csv"]) == ("a", "day=of")


@pytest.mark.parametrize("path", ["=1/x", "a=/x", "a=1/A=2/x"])
def test_a_folder_without_a_name_or_a_value_or_with_a_name_again_is_told(path: str) -> None:
    with pytest.raises(BadInput, match=r"names no column with a value, or one that a folder above"):
        folder_columns(path)


def put(folder: Path, fmt: str, path: str, **row: object) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if fmt == "parquet":
        papq.write_table(pa.table({name: [it] for name, it in row.items()}), file)
    elif fmt == "json":
        file.write_text(json.dumps(row) + "\n")
    else:
        file.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    return sorted((json.loads(line) for line in lines), key=lambda each: each["id"])


def through(run: Run, config: Config) -> list[dict[str, Any]]:
    reports = run({**config, "sink.format": "json"})
    assert [each.trace for each in reports.statuses if each.trace] == []
    return rows(Path(config["sink.path"]))


@pytest.mark.spark
@pytest.mark.parametrize("fmt", ["csv", "json", "parquet"])
@pytest.mark.parametrize("evolution", thinned(["", "add-columns"], 2))
def test_folders_name_columns_of_texts_whatever_the_format(
    run: Run, folders: Config, tmp_path: Path, fmt: str, evolution: str
) -> None:
    source = tmp_path / "in"
    put(source, fmt, "dt=2026-01-01/hour=01/a", id=1)
    put(source, fmt, "dt=2026-01-02/hour=__HIVE_DEFAULT_PARTITION__/a", id=2)
    put(source, fmt, "sub/dt=a%2Fb %C3/a", id=3)
    put(source, fmt, "plain", id=4)
    found = through(run, {**folders, "source.format": fmt, "source.schema.evolution": evolution})
    assert found == [
        {"id": 1, "dt": "2026-01-01", "hour": "01"},
        {"id": 2, "dt": "2026-01-02"},
        {"id": 3, "dt": "a/b Ã"},
        {"id": 4},
    ]


@pytest.mark.spark
@pytest.mark.parametrize("fmt", ["csv", "json", "parquet"])
def test_a_column_of_the_files_counts_and_copies_have_the_columns_of_their_folders(
    run: Run, folders: Config, tmp_path: Path, fmt: str
) -> None:
    source = tmp_path / "in"
    put(source, fmt, "dt=2026-01-01/h=1/a:b", id=1)
    put(source, fmt, "dt=2026-01-02/h=2/a", id=2, dt="2026-05-05")
    schema = "id BIGINT, dt STRING, h INT" if fmt != "csv" else "id BIGINT, dt DATE, h INT"
    config = {**folders, "source.format": fmt, "source.schema": schema, "sink.format": "json"}
    reports = run(config)
    assert [each.trace for each in reports.statuses if each.trace] == []
    assert rows(tmp_path / "out") == [
        {"id": 1, "dt": "2026-01-01", "h": 1},
        {"id": 2, "dt": "2026-05-05", "h": 2},
    ]
    told = "1 columns that its folders name are in their files, too, and the values of the files"
    assert any(told in str(each) and "(dt)" in str(each) for each in reports.told)


@pytest.mark.spark
def test_what_the_sink_wrote_by_columns_is_read_back_with_their_types(
    run: Run, folders: Config, tmp_path: Path
) -> None:
    values = ["a", "x=y/z", "%41", "ä b", "a:b", "{*}", None]
    lines = [json.dumps({"id": n, "k": v, "d": "2026-01-05"}) for n, v in enumerate(values)]
    (tmp_path / "in" / "a.json").write_text("\n".join(lines))
    schema = "id INT, k STRING, d DATE"
    config = {**folders, "source.format": "json", "source.schema": schema}
    run({**config, "sink.format": "parquet", "sink.partition.by": "k,d"})
    back = {"source.path": folders["sink.path"], "sink.path": str(tmp_path / "back")}
    found = through(run, {**config, **back, "source.format": "parquet", "source.glob": "*.parquet"})
    assert [(each["id"], each.get("k"), each["d"]) for each in found] == [
        (number, value, "2026-01-05") for number, value in enumerate(values)
    ]


@pytest.mark.spark
@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_folder_that_does_not_fit_its_type_is_told_with_the_file(
    run: Run, folders: Config, tmp_path: Path, tolerance: str
) -> None:
    source = tmp_path / "in"
    put(source, "json", "h=1/a", id=1)
    put(source, "json", "h=x/b", id=2)
    config = {**folders, "source.format": "json", "source.schema": "id INT, h INT"}
    more = {"errors.tolerance": tolerance, "sink.format": "json", "source.max.files.per.batch": "1"}
    reports = run({**config, **more})
    told = "".join(each.trace for each in reports.statuses)
    why = f'{source}/h=x/b: column `h` (INT): For input string: "x"'
    assert (why in told) is (tolerance == "none")
    assert [each["id"] for each in rows(tmp_path / "out")] == [1]


@pytest.mark.spark
def test_a_column_of_folders_that_the_schema_has_not_is_left_out_and_told(
    run: Run, folders: Config, tmp_path: Path
) -> None:
    put(tmp_path / "in", "csv", "dt=1/a", id=1)
    reports = run(
        {**folders, "source.format": "csv", "source.schema": "id INT", "sink.format": "json"}
    )
    assert rows(tmp_path / "out") == [{"id": 1}]
    told = "".join(map(str, reports.told))
    assert "1 columns of its files are not in source.schema, and left out (dt)" in told
