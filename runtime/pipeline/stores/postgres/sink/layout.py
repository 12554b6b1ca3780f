# pyright: basic, reportAttributeAccessIssue=false
"""Distributes the rows and columns of a batch over the target tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ....batches.topics import TOPIC
from ....spi.config import ConfigInvalid
from ....spi.errors import RowsRefused, SchemaRefused
from ...topics import depends_on_topic, name_of_topic, rows_of_topics
from ..names import TableName
from . import keys

KEY: Final = "_key"
METADATA: Final = (KEY, TOPIC, "_partition", "_offset", "_timestamp", "_headers")
"""The metadata columns of a record."""
OP, DELETED = "__op", "__deleted"
SEQUENCE, IS_DELETE = "__fairlead_seq", "__fairlead_delete"
"""Columns of staging tables: a row's position in its batch, and whether it deletes."""


class TargetRows(NamedTuple):
    """The rows of a batch for one table; `deletes` flags the deletes, None: there are none."""

    name: TableName
    rows: pa.Table
    deletes: pa.ChunkedArray | None
    is_emptied: bool = False
    """Whether the table is truncated before."""

    @property
    def only_deletes(self) -> bool:
        """Whether no row is put in, so that columns beside the key are not needed."""
        if self.deletes is None:
            return not self.rows.num_rows
        return bool(pc.all(self.deletes).as_py())


@dataclass(frozen=True)
class RowLayout:
    """The names of tables and columns by a config."""

    format: str
    schema: str
    mode: str
    pk_mode: str
    pk_fields: tuple[str, ...]
    may_delete: bool
    whitelist: tuple[str, ...]
    may_truncate: bool = False
    order: str = ""
    """The column with the version of a row."""

    @property
    def is_of_topics(self) -> bool:
        """Whether the table of a row depends on its topic."""
        return depends_on_topic(self.format)

    def split(self, table: pa.Table) -> Iterator[TargetRows]:
        """Yield the rows of each table, in order; raises `SchemaRefused`, `RowsRefused`."""
        if not self.is_of_topics:
            yield self._laid_out(self._name(""), table)
            return
        for topic, rows in rows_of_topics(table, keys.TABLE_FORMAT):
            yield self._laid_out(self._name(topic), rows)

    def _name(self, topic: str) -> TableName:
        try:
            return TableName.parse(name_of_topic(self.format, topic), self.schema)
        except ValueError as error:
            raise ConfigInvalid(f"{keys.TABLE_FORMAT}: {error}") from None

    def _laid_out(self, name: TableName, table: pa.Table) -> TargetRows:
        table, is_emptied = self._since_truncate(table)
        is_keyed = self.mode != keys.INSERT
        tombstones = self._tombstones(name, table) if is_keyed else None
        table = self._with_key(table)
        deletes = _deletes(table, tombstones) if is_keyed else None
        if deletes is not None and not self.may_delete:
            table, deletes = table.filter(pc.invert(deletes)), None
        if deletes is not None and self.order in table.column_names:
            self._refuse_unordered(name, pc.and_(deletes, pc.is_null(table[self.order])))
        wanted = {*self.whitelist, *self.pk_fields, self.order} if self.whitelist else None
        names = [each for each in table.column_names if self._is_written(each, wanted)]
        return TargetRows(name, table.select(names), deletes, is_emptied)

    def _tombstones(self, name: TableName, table: pa.Table) -> pa.ChunkedArray | None:
        """Return which rows have a key and no value; None: there are none.

        Raises `RowsRefused` where they do not delete: written as they are, they would overwrite
        the row of their key with nulls.
        """
        value = [each for each in table.column_names if each not in METADATA]
        if KEY not in table.column_names:
            return None
        is_tombstone = pc.is_valid(table[KEY])
        for each in value:
            is_tombstone = pc.and_(is_tombstone, pc.is_null(table[each]))
        if not pc.any(is_tombstone).as_py():
            return None
        if not self.may_delete or self.pk_mode != keys.RECORD_KEY:
            raise RowsRefused(
                f"{name}: a row is a tombstone, a key without a value: set {keys.DELETE_ENABLED}="
                f"true and {keys.PK_MODE}={keys.RECORD_KEY} to delete the row of its key, or leave "
                "it out by a transform. Nothing of the batch was written"
            )
        return is_tombstone

    def _refuse_unordered(self, name: TableName, found: pa.ChunkedArray) -> None:
        if pc.any(found).as_py():
            raise RowsRefused(
                f"{name}: a delete has no {self.order}, so that it is unknown whether "
                f"it is older than what it deletes: have it (REPLICA IDENTITY FULL), or set "
                f"{keys.ORDER} to a column that deletes have as well (__lsn)"
            )

    def _since_truncate(self, table: pa.Table) -> tuple[pa.Table, bool]:
        """Return the rows after the last TRUNCATE, and whether there was one."""
        if OP not in table.column_names:
            return table, False
        empties = pc.fill_null(pc.equal(table[OP].cast(pa.string()), "t"), False)  # noqa: FBT003
        if not pc.any(empties).as_py():
            return table, False
        if not self.may_truncate:
            return table.filter(pc.invert(empties)), False
        last: int = pc.max(pc.indices_nonzero(empties)).as_py()
        return table.slice(last + 1), True

    def _is_written(self, name: str, wanted: set[str] | None) -> bool:
        if wanted is not None:
            return name in wanted
        return name == self.order or (name not in METADATA and not name.startswith("__"))

    def _with_key(self, table: pa.Table) -> pa.Table:
        """Return rows with the fields of their key as columns, replacing columns of that name."""
        if self.pk_mode != keys.RECORD_KEY or KEY not in table.column_names:
            return table
        column = table[KEY].combine_chunks() if table.num_rows else table[KEY]
        if pa.types.is_struct(table.schema.field(KEY).type):
            names = self.pk_fields or tuple(each.name for each in column.type)
            fields = {name: pc.struct_field(column, name) for name in names}
        elif len(self.pk_fields) == 1:
            fields = {self.pk_fields[0]: column}
        else:
            raise SchemaRefused(
                f"the key of rows is one value: name its column in {keys.PK_FIELDS}"
            )
        for name, values in fields.items():
            if name in table.column_names:
                table = table.drop_columns(name)
            table = table.append_column(name, values)
        return table


def _deletes(table: pa.Table, tombstones: pa.ChunkedArray | None) -> pa.ChunkedArray | None:
    deletes = tombstones
    if OP in table.column_names:
        marked = pc.equal(table[OP].cast(pa.string()), "d")
        deletes = marked if deletes is None else pc.or_kleene(deletes, marked)
    if DELETED in table.column_names:
        marked = table[DELETED]
        if not pa.types.is_boolean(marked.type):
            marked = pc.equal(marked.cast(pa.string()), "true")
        deletes = marked if deletes is None else pc.or_kleene(deletes, marked)
    if deletes is None:
        return None
    deletes = pc.fill_null(deletes, False)  # noqa: FBT003
    return deletes if pc.any(deletes).as_py() else None
