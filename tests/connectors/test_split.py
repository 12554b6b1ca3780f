"""How a connector splits its work again: as before, as far as that still fits."""

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.stores.files import keys as files

Split = Sequence[Mapping[str, str]]


def split(config: Mapping[str, str], tasks: int, before: Split = ()) -> Split:
    connector = SparkPipeline()
    connector.start(Context(Resource("c"), print, before), config)
    return connector.task_configs(tasks)


def land(folder: Path, *names: str, rows: str = "1") -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.csv").write_text(f"n\n{rows}\n")


def config(tmp_path: Path, **more: str) -> dict[str, str]:
    plain = {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": str(tmp_path / "in"),
        "sink.format": "json",
        "sink.path": str(tmp_path / "out"),
    }
    return {**plain, **{key.replace("_", "."): value for key, value in more.items()}}


def test_a_connector_that_moves_in_a_growing_folder_keeps_its_split(tmp_path: Path) -> None:
    land(tmp_path / "in", "a", "b")
    before = split(config(tmp_path), 3)
    land(tmp_path / "in", *(f"late{number}" for number in range(40)), rows="1.5")
    assert split(config(tmp_path), 3, before) == before


def test_another_number_of_tasks_deals_anew_and_keeps_the_schema(tmp_path: Path) -> None:
    land(tmp_path / "in", "a")
    before = split(config(tmp_path), 2)
    land(tmp_path / "in", "b", rows="1.5")
    after = split(config(tmp_path), 3, before)
    assert [each[files.TASK_SCHEMA] for each in after] == [before[0][files.TASK_SCHEMA]] * 3


def test_another_folder_is_split_and_inferred_anew(tmp_path: Path) -> None:
    land(tmp_path / "in", "a")
    before = split(config(tmp_path), 2)
    land(tmp_path / "other", "a", rows="x")
    moved = config(tmp_path, source_path=str(tmp_path / "other"))
    assert split(moved, 2, before) == split(moved, 2)


def test_a_changed_transform_changes_no_share_and_no_schema(tmp_path: Path) -> None:
    land(tmp_path / "in", "a", "b")
    before = split(config(tmp_path), 2)
    land(tmp_path / "in", "c", rows="x")
    changed = {
        **config(tmp_path),
        "transforms": "t",
        "transforms.t.type": "select",
        "transforms.t.columns": "n",
    }
    after = split(changed, 2, before)
    for key in (files.TASK_SCHEMA, files.TASK_BUCKETS):
        assert [each[key] for each in after] == [each[key] for each in before]


def test_the_tasks_of_a_connector_have_equal_parts_of_its_rate_limits(tmp_path: Path) -> None:
    land(tmp_path / "in", "a", "b")
    limited = config(tmp_path, rate_limit_rows_per_second="5")
    connector = SparkPipeline()
    context = Context(Resource("c"), print)
    connector.start(context, limited)
    paces = [connector.pipeline(context, each).pace for each in connector.task_configs(2)]
    assert [(each.rows_per_s, each.bytes_per_s) for each in paces] == [(2.5, inf)] * 2


@pytest.mark.parametrize("given", ["0", "-1", "0.5", "many"])
def test_a_rate_limit_is_a_whole_number_above_zero(tmp_path: Path, given: str) -> None:
    refused = SparkPipeline.validate(config(tmp_path, rate_limit_bytes_per_second=given))
    assert list(refused.errors) == ["rate.limit.bytes.per.second"]
