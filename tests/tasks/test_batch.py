# pyright: basic
"""A batch counts its rows as they pass; what is not known is not taken for nothing."""

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Token
from fairlead.runtime.pipeline.batches import batch, counting, dead_letters
from fairlead.runtime.pipeline.batches.batch import Batch, Target
from fairlead.runtime.pipeline.batches.bisection import failing_rows, refusal_of_sink, without
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline, Tolerance
from fairlead.runtime.pipeline.spi.errors import (
    BadInput,
    LostRange,
    RowsRefused,
    SinkAway,
    Unreadable,
)
from fairlead.runtime.pipeline.spi.rows import Rejects
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit

COMMIT = CommitId("c", 0, Token(1, 0), 0)


def run(error: Exception, monkeypatch: pytest.MonkeyPatch) -> tuple[Manifest, MagicMock]:
    """Run a batch whose sink asks Spark how many rows there were; tell the sink as well."""

    def get(_: object) -> object:
        raise error

    monkeypatch.setattr(counting, "sf", MagicMock())
    monkeypatch.setattr(counting, "Observation", type("Lost", (), {"get": property(get)}))
    source, sink = (
        MagicMock(),
        MagicMock(counts_rows=False, takes_arrow=False, writes_at_once=False),
    )
    source.blame.return_value = None
    source.rejects.return_value = ()
    sink.stage.return_value = Manifest("/sink", "staging", -1, 9, 1)
    pipeline = Pipeline(source, (), sink, Pace(Limit(1, 1, 1)))
    made = Batch(pipeline, Target(sink), BatchPlan((1,), (), 1, 1), COMMIT)
    return made.run(MagicMock()).manifest, sink


def test_a_batch_whose_jvm_dies_before_it_told_its_rows_is_not_taken_for_an_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Py4JNetworkError):
        run(Py4JNetworkError("the connection was closed"), monkeypatch)


def test_a_batch_of_which_spark_saw_that_it_is_empty_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest, sink = run(Py4JError("there is no such metric"), monkeypatch)
    assert (manifest.rows, manifest.files) == (0, 0)
    sink.discard.assert_called_once_with(COMMIT)


def test_rows_that_no_transform_makes_more_or_less_are_counted_by_the_sink_alone() -> None:
    source, sink = MagicMock(), MagicMock(counts_rows=True, takes_arrow=False, writes_at_once=False)
    source.rejects.return_value = ()
    sink.stage.return_value = Manifest("/sink", "staging", 7, 9, 1)
    pipeline = Pipeline(source, (), sink, Pace(Limit(1, 1, 1)))
    staged = Batch(pipeline, Target(sink), BatchPlan((1,), (), 1), COMMIT).run(MagicMock())
    assert (staged.rows_in, staged.manifest.rows) == (7, 7)
    sink.stage.assert_called_once_with(source.read.return_value, COMMIT, 1)


@pytest.mark.parametrize(
    ("planned", "transforms", "counts"),
    [(5, 1, 0), (0, 1, 0), (-1, 1, 1), (-1, 0, 0), (5, 0, 0)],
)
def test_rows_are_counted_before_transforms_only_where_the_source_does_not_know_them(
    planned: int, transforms: int, counts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[MagicMock] = []

    def count() -> MagicMock:
        made.append(MagicMock(rows=9))
        return made[-1]

    monkeypatch.setattr(batch, "RowCount", count)
    source, sink = MagicMock(), MagicMock(counts_rows=True, takes_arrow=False, writes_at_once=False)
    source.rejects.return_value = ()
    sink.stage.return_value = Manifest("/sink", "staging", 3, 9, 1)
    chain = tuple(MagicMock(rejects=MagicMock(return_value=())) for _ in range(transforms))
    pipeline = Pipeline(source, chain, sink, Pace(Limit(1, 1, 1)))
    plan = BatchPlan((1,), (), 1, planned)
    staged = Batch(pipeline, Target(sink), plan, COMMIT).run(MagicMock())
    assert [each.on.call_args.args for each in made] == [(source.read.return_value,)] * counts
    known = planned if planned >= 0 else 3
    assert (staged.rows_in, staged.manifest.rows) == (9 if counts else known, 3)


def test_rows_that_fail_are_counted_among_the_bad_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    source, transform = MagicMock(), MagicMock()
    source.rejects.return_value = [Rejects(MagicMock(), lambda: 1)]
    transform.rejects.return_value = [Rejects(MagicMock(), lambda: 2)]
    monkeypatch.setattr(dead_letters.BadRows, "_letters", MagicMock())
    tolerance = Tolerance(max_ratio=7 / 11)
    pipeline = Pipeline(source, (transform,), MagicMock(), Pace(Limit(1, 1, 1)), tolerance)
    failed = [
        ("transform", Rejects(MagicMock(), lambda: 3)),
        ("sink", Rejects(MagicMock(), lambda: 1)),
    ]
    rejected = dead_letters.BadRows(pipeline, COMMIT, (), failed).reject(MagicMock(), 10)
    assert (rejected.rows, rejected.unread) == (7, 1)
    failed.append(("sink", Rejects(MagicMock(), lambda: 1)))
    with pytest.raises(BadInput, match=r"^8 of the 11 rows of a batch are bad"):
        dead_letters.BadRows(pipeline, COMMIT, (), failed).reject(MagicMock(), 10)


def test_transforms_tell_nothing_of_a_batch_that_is_unreadable_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, sink, transform = MagicMock(), MagicMock(), MagicMock()
    source.read.side_effect = Unreadable([LostRange(1, {"file": "a"}, "is torn")])
    source.rejects.return_value = ()
    monkeypatch.setattr(dead_letters, "_of_ranges", lambda *_: Rejects(MagicMock(), lambda: 1))
    monkeypatch.setattr(dead_letters.BadRows, "_letters", MagicMock())
    tolerance = Tolerance(max_ratio=1)
    pipeline = Pipeline(source, (transform,), sink, Pace(Limit(1, 1, 1)), tolerance)
    staged = Batch(pipeline, Target(sink), BatchPlan((1,), (), 1), COMMIT).run(MagicMock())
    assert (staged.rows_in, staged.rejected) == (1, 1)
    assert transform.mock_calls == []


def test_a_batch_without_rows_asks_for_columns_only_if_it_may_have_them() -> None:
    source, sink = MagicMock(), MagicMock(takes_arrow=True, writes_at_once=False)
    source.rejects.return_value = ()
    sink.stage.return_value = Manifest("/sink", "staging", 0, 0, 0)
    pipeline = Pipeline(source, (), sink, Pace(Limit(1, 1, 1)))
    for columns, asked in ((["_key"], 0), ([], 0), (["_key", "n"], 1)):
        source.read.return_value = pa.table({each: [1] for each in columns}).slice(1)
        staged = Batch(pipeline, Target(sink), BatchPlan((1,), (), 0), COMMIT).run(MagicMock())
        assert (staged.rows_in, staged.manifest.rows, sink.prepare.call_count) == (0, 0, asked)


def failing(bad: set[int], tried: list[int]) -> Callable[[Any], None]:
    def attempt(part: Any) -> None:
        tried.append(part.num_rows)
        if strange := bad & set(part["n"].to_pylist()):
            raise RowsRefused(f"no {min(strange)}")

    return attempt


def test_rows_that_a_sink_refuses_are_found_by_halves_and_no_more_than_are_looked_for() -> None:
    table: Any = pa.table({"n": range(1_000)})
    tried: list[int] = []
    found = failing_rows(table, failing({3, 500, 999}, tried), refusal_of_sink, 3)
    assert found == {3: "no 3", 500: "no 500", 999: "no 999"}
    assert len(tried) < 3 * 2 * 11
    assert without(table, found).num_rows == 997
    assert failing_rows(table.slice(3, 1), failing({3}, []), refusal_of_sink, 1) == {0: "no 3"}
    with pytest.raises(BadInput, match=r"more than errors\.bisect\.max=2 rows .*: no \d+\."):
        failing_rows(table, failing({3, 500, 999}, []), refusal_of_sink, 2)


def test_what_is_no_rows_fault_ends_the_search() -> None:
    def away(_: object) -> None:
        raise SinkAway("gone")

    with pytest.raises(SinkAway):
        failing_rows(pa.table({"n": [1, 2]}), away, refusal_of_sink, 9)
