# pyright: basic
"""What is proved is read by Arrow as Spark reads it: each row, to the last bit."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead_tests.arrow.both_readers import BothReaders, Found
from fairlead_tests.arrow.drawn_csv import Batch, batches

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

FILES = 1_200
"""How many are read at once: a config takes Spark as long as hundreds of small files."""


@pytest.mark.parametrize(
    ("configs", "proved"),
    [(4, 1_000), pytest.param(400, 100_000, marks=[pytest.mark.soak, pytest.mark.timeout(0)])],
)
def test_rows_of_proved_files_are_those_that_spark_reads(
    engine: Embedded, tmp_path: Path, configs: int, proved: int
) -> None:
    found, seen = Found(), list[object]()

    # A batch cannot be made smaller as a whole: a difference is found in one file of it.
    @settings(
        max_examples=configs,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        derandomize=configs < 10,  # so few may by chance be much alike, and prove little
        suppress_health_check=list(HealthCheck),
    )
    @given(batches(FILES))
    def compare(batch: Batch) -> None:
        nonlocal found
        # Hypothesis draws much like what it has drawn.
        if batch.config in seen or found.proved >= proved:
            return
        folder = tmp_path / str(len(seen))
        folder.mkdir()
        found = found.plus(engine.run("both", lambda spark: compared(spark, batch, folder)))
        seen.append(batch.config)

    compare()
    shown = [*found.differences, *found.unread]
    assert not shown, "\n".join(shown)
    assert found.proved >= proved


def compared(spark: SparkSession, batch: Batch, folder: Path) -> Found:
    reader = BothReaders(spark, batch, folder)
    return reader.compare(reader.surveys())
