"""Counts of files by lane."""

from pathlib import Path

from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from fairlead.runtime.pipeline.formats.csv.grammar import PlainForm
from fairlead.runtime.pipeline.formats.csv.proof import CsvProof
from fairlead.runtime.pipeline.formats.csv.style import CsvStyle
from fairlead.runtime.pipeline.stores.files.copies import FileSurvey
from fairlead.runtime.pipeline.stores.files.lanes import LaneCounter

COLUMNS = StructType([StructField("n", IntegerType()), StructField("s", StringType())])


def test_files_that_are_proved_for_nothing_are_counted_with_the_reason() -> None:
    """Executors have no Arrow: no file is to blame."""
    counter = LaneCounter("csv", lambda *_: "")
    form = PlainForm(COLUMNS, CsvStyle(), {}, "UTC", is_inferred=False)
    file = Path("/in/a.csv")
    proved = FileSurvey(file, proof=CsvProof(COLUMNS, (0, 9)))
    counter.refusal = "executors have none"
    counter.count(form, [(file, proved)], is_parted=False)
    assert (counter.last.ranges, counter.last.why_spark) == (
        0,
        "Arrow could not read them: executors have none",
    )
    counter.count(form, [(file, proved)], is_parted=True)
    assert (counter.last.ranges, counter.last.why_spark) == (1, "")
