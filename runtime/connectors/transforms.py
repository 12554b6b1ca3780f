"""The transforms that are built in: a query over the batch, or its select list alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from .spi import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Sql(Transform):
    """A query over the table `input`, which is the batch; it sees no other batch."""

    query: str

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Describe the rows that the query makes of the batch."""
        # Views belong to the session, which all tasks share: each batch takes a name of its
        # own, and a common table expression gives it the name that the query knows.
        view = f"fairlead_{uuid4().hex}"
        frame.createOrReplaceTempView(view)
        query = self.query.strip().rstrip(";")
        try:
            return frame.sparkSession.sql(
                f"WITH input AS (SELECT * FROM {view}) SELECT * FROM (\n{query}\n)"  # noqa: S608
            )
        finally:
            frame.sparkSession.catalog.dropTempView(view)


def select(columns: str) -> Transform:
    """Return the transform that keeps a select list's columns: `carrier, dep_delay / 60 AS h`."""
    return Sql(f"SELECT {columns} FROM input")  # noqa: S608  # the user's own SQL, on his data
