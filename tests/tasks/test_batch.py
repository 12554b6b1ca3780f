"""A batch counts its rows as they pass; what is not known is not taken for nothing."""

from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Token
from fairlead.runtime.pipeline.batches import counting
from fairlead.runtime.pipeline.batches.batch import Batch, Target
from fairlead.runtime.pipeline.spi.connector import Pace, Pipeline
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit

COMMIT = CommitId("c", 0, Token(1, 0), 0)


def run(error: Exception, monkeypatch: pytest.MonkeyPatch) -> tuple[Manifest, MagicMock]:
    """Run a batch whose sink asks Spark how many rows there were; tell the sink as well."""

    def get(_: object) -> object:
        raise error

    monkeypatch.setattr(counting, "sf", MagicMock())
    monkeypatch.setattr(counting, "Observation", type("Lost", (), {"get": property(get)}))
    source, sink = MagicMock(), MagicMock(counts_rows=False, takes_arrow=False)
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
