# pyright: basic, reportAttributeAccessIssue=false
"""Records that a source hands over as Kafka gets them, for the same sink as encoded rows."""

import pyarrow as pa
import pyarrow.compute as pc

from ....spi.errors import SchemaRefused
from .encoding import RECORD


class FinishedRecords:
    """Takes rows that are records already, converted by a plugin of Kafka Connect's."""

    def check(self, schema: pa.Schema) -> None:
        """Raise `SchemaRefused` if rows of a schema are no records."""
        if schema.names != RECORD.names:
            raise SchemaRefused(f"records have the columns {RECORD.names}, not {schema.names}")

    def encode(self, rows: pa.Table) -> pa.Table:
        """Return the records as they are, but for times that librdkafka cannot send."""
        records = rows.cast(RECORD)
        times = pc.max_element_wise(records["timestamp"], 1, skip_nulls=False)
        return records.set_column(3, RECORD.field(3), times)
