# pyright: basic
"""Sets aside records whose headers cannot be read.

The client gives the keys of headers as texts. If one is no UTF-8, it gives none of the record's.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ....spi.errors import BadInput
from ....spi.rows import Rejects
from .decoding import KafkaRows, RecordDecoder
from .reader import FLAW
from .records.bad_records import record_error, reject_records, without_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class HeaderDecoder(RecordDecoder):
    """Refuses records with unreadable headers; another decoder decodes the others."""

    def __init__(self, rows: KafkaRows, others: RecordDecoder) -> None:
        """Take the decoder of keys and values."""
        super().__init__(rows)
        self._others = others
        self._rejects: list[Rejects] = []

    @property
    def parts_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        return self._rows.parts_bad or self._others.parts_rows

    @property
    def remark(self) -> str:
        """Return the remark of the other decoder."""
        return self._others.remark

    def rejects(self) -> Sequence[Rejects]:
        """Return the records with unreadable headers, and those of the other decoder."""
        return [*self._rejects, *self._others.rejects()]

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the decoded rows; raises `BadInput`."""
        self._rejects = []
        bad = {row: why for row, why in enumerate(table[FLAW].to_pylist()) if why}
        if bad and not self._rows.parts_bad:
            row = min(bad)
            raise BadInput(record_error(table, row, bad[row]))
        if bad:
            self._rejects.append(reject_records(spark, table, bad))
            table = without_rows(table, bad)
        return self._others.decode(spark, table)
