"""A sample of files: the first rows as a task would read and transform them, and bad ones."""

from pathlib import Path

import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.sample import (
    Sample,
    SampledColumn,
    SampledRows,
    read_sample,
)
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.context import Context

pytestmark = pytest.mark.spark

CSV = {"source.format": "csv", "source.header": "true", "sink.format": "parquet"}
UPPER = {
    "transforms": "upper",
    "transforms.upper.type": "sql",
    "transforms.upper.query": "SELECT upper(name) AS name, array(id) AS ids,"
    " cast(id / 4 AS decimal(9, 2)) AS part, named_struct('at', at, 'raw', cast(name AS binary))"
    " AS more FROM input",
}


def sample_of(engine: Embedded, config: dict[str, str]) -> Sample:
    context = Context(Resource("sample"), print)
    return read_sample(config, context, lambda job: engine.run("sample", job))


def test_ten_rows_are_read_and_transformed_with_their_types(
    engine: Embedded, folders: dict[str, str]
) -> None:
    source = Path(folders["source.path"])
    lines = [f"{number},name {number},2026-01-01 10:00:00" for number in range(1_000)]
    (source / "a.csv").write_text("\n".join(["id,name,at", *lines]))
    config = folders | CSV
    plain = sample_of(engine, config)
    columns = [("id", "bigint"), ("name", "string"), ("at", "timestamp")]
    assert plain.before.columns == [SampledColumn(*each) for each in columns]
    assert [row[:2] for row in plain.before.rows] == [[str(n), f"name {n}"] for n in range(10)]
    assert (plain.after, plain.warnings) == (None, ())
    after = sample_of(engine, config | UPPER).after
    assert after is not None
    assert [each.type for each in after.columns] == [
        "string",
        "array<bigint>",
        "decimal(9,2)",
        "struct<at:timestamp,raw:binary>",
    ]
    assert [row[:3] for row in after.rows] == [
        [f"NAME {n}", f"[{n}]", f"{n / 4:.2f}"] for n in range(10)
    ]
    assert '"raw": "bmFtZSAw"' in str(after.rows[0][3])
    assert not Path(folders["sink.path"]).exists()


def test_bad_rows_are_counted_or_refused_and_no_rows_are_said_to_be_none(
    engine: Embedded, folders: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(folders["source.path"])
    config = folders | CSV
    config |= {"source.schema": "id INT"}
    (source / "a.csv").write_text("id\n1\nx\n3\n")
    with pytest.raises(Exception, match=r"a\.csv"):
        sample_of(engine, config)
    tolerant = sample_of(engine, config | {"errors.tolerance": "all"})
    assert tolerant.before.rows == [["1"], ["3"]]
    (warning,) = tolerant.warnings
    assert warning.startswith("1 bad rows were left out, such as: ")
    (source / "a.csv").unlink()
    monkeypatch.setattr("fairlead.runtime.pipeline.connectors.sample._EMPTY_SECONDS", 0)
    nothing = sample_of(engine, config)
    assert (nothing.before, nothing.warnings) == (
        SampledRows((), ()),
        ("there is nothing to read",),
    )
