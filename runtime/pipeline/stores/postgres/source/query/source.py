# pyright: basic
"""The source of a query, incremental by the highest values of its growing columns.

Rows of a query have no transaction id, so late commits are not detected: a row with a lower value
than the last one is missed. A column of xid8 with the row's transaction is exact: it is read up to
the oldest open transaction. Rows of equal values are in one batch, so that the next batch continues
after them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from psycopg import sql

from .......events.commits import Advance, Document, identity
from .....spi.config import ParsedConfig
from .....spi.errors import SourceAway
from .....spi.source import ArrowSource, BatchPlan, Limit
from ...connecting import Server
from ...tables import keys
from ...tables.reading import RowReader
from ...tables.session import DatabaseSnapshot, Horizon, ReadSession, TableChanged
from .shape import XID, GrowingColumn, QueryShape

if TYPE_CHECKING:
    from collections.abc import Sequence


PARTITION: Final[Document] = {"query": "query"}
"""The source partition, as in Connect JDBC."""
_ROW_BYTES: Final = 64
"""The least size of a row that is assumed."""
_FIRST_ROWS: Final = 1_000
"""The most rows of the first page, when their size is unknown."""


class QuerySource(ArrowSource):
    """Reads a query in pages."""

    def __init__(self, server: Server, settings: ParsedConfig) -> None:
        self._session = ReadSession(server)
        self._settings = settings
        self._shape: QueryShape | None = None
        self._seen: Horizon | None = None
        """The horizon of the last plan's snapshot."""
        self._row_bytes = 0
        """The estimated size of a row; 0: unknown yet."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[pa.Table]:
        """Fetch the next page."""
        start = offsets.get(identity(PARTITION))
        if start and start.get("done"):
            return BatchPlan(remark=self._shape.remark if self._shape else "")
        self._shape = self._shape or QueryShape.read(self._session.server, self._settings)
        fits = limit.bytes // self._row_bytes if self._row_bytes else _FIRST_ROWS
        most = max(1, min(limit.rows, fits))
        try:
            rows, end = self._look(start or {}, most)
            if not rows.num_rows and not self._shape.growing:
                # A look that waits while a table is rewritten sees no rows: a second one tells.
                rows, end = self._look(start or {}, most)
        except TableChanged as changed:
            self._shape = None  # described again
            raise SourceAway(str(changed)) from None
        remark = self._shape.remark
        if end == (start or {}):
            return BatchPlan(remark=remark)
        self._row_bytes = max(_ROW_BYTES, rows.nbytes // max(1, rows.num_rows))
        advance = Advance(PARTITION, start, end)
        has_more = rows.num_rows >= most
        size, count = rows.nbytes, rows.num_rows
        return BatchPlan((rows,), (advance,), size, count, has_more, remark=remark)

    def verify(self, ranges: "Sequence[pa.Table]") -> None:
        """Wait until the fetched rows are durable on the server."""
        del ranges
        if self._seen is not None:
            self._session.wait_durable(self._seen)

    def close(self) -> None:
        """Close its session."""
        self._session.close()

    def _look(self, start: Document, most: int) -> tuple[pa.Table, Document]:
        """Return the rows after an offset in a snapshot of its own, and the new offset."""
        with self._session.snapshot() as snapshot:
            self._seen = snapshot.horizon()
            return self._page(snapshot, self._seen, start, most)

    def _page(
        self, snapshot: DatabaseSnapshot, horizon: Horizon, start: Document, most: int
    ) -> tuple[pa.Table, Document]:
        """Return the rows after an offset, and the new offset."""
        shape = self._shape or QueryShape.read(self._session.server, self._settings)
        topic = self._settings.text(keys.TOPIC_PREFIX) or "query"
        reader = RowReader(shape.relation, shape.columns, topic)
        if not shape.growing:
            at = int(start.get("rows") or 0)
            page = sql.SQL("OFFSET {} LIMIT {}").format(sql.Literal(at), sql.Literal(most))
            rows = reader.read(snapshot, sql.SQL("true"), rest=page).rows
            end: Document = {"rows": at + rows.num_rows}
            return rows, end if rows.num_rows == most else {**end, "done": True}
        beside = {each.name: each.text for each in shape.growing}
        order = sql.SQL(", ").join(sql.Identifier(each.name) for each in shape.growing)
        ties = sql.SQL("ORDER BY {} FETCH FIRST {} ROWS WITH TIES")
        page = ties.format(order, sql.Literal(most))
        where = self._where(shape.growing, start, horizon)
        rows, beside_values = reader.read(snapshot, where, beside, page)
        if not rows.num_rows:
            return rows, start
        last = {each.member: beside_values[each.name][-1].as_py() for each in shape.growing}
        return rows, {name: _spelled(name, value) for name, value in last.items()}

    def _where(
        self, growing: "Sequence[GrowingColumn]", start: Document, horizon: Horizon
    ) -> sql.Composed:
        names = sql.SQL(", ").join(sql.Identifier(each.name) for each in growing)
        parts = [sql.SQL("({}) IS NOT NULL").format(names)]
        if start:
            values = sql.SQL(", ").join(each.literal(start[each.member]) for each in growing)
            parts.append(sql.SQL("({}) > ({})").format(names, values))
        first, delay = growing[0], self._settings.number(keys.DELAY_MS)
        if first.kind == XID:
            parts.append(sql.SQL("{} < {}").format(names, first.literal(horizon.lo)))
        elif first.member == "timestamp":
            # A day has rows until it is over; a number beside it tells which of them were read.
            is_open = first.kind == "date" and growing[-1].member == "timestamp"
            ends = "{} < (now() - {} * interval '1 ms')::date"
            bound = sql.SQL(ends if is_open else "{} <= now() - {} * interval '1 ms'")
            parts.append(bound.format(sql.Identifier(first.name), sql.Literal(delay)))
        return sql.SQL(" AND ").join(parts)


def _spelled(member: str, value: str) -> str | int:
    return int(value) if member == "incrementing" else value
