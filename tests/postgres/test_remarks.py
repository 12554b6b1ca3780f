"""Remarks about the tables in the catalog are looked up again now and then."""

import time
from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from fairlead.runtime.pipeline.stores.postgres.names import TableName
from fairlead.runtime.pipeline.stores.postgres.source.log.server.slot import SlotState
from fairlead.runtime.pipeline.stores.postgres.source.log.source import LogRemarks
from fairlead.runtime.pipeline.stores.postgres.tables.catalog import CatalogRemarks
from fairlead.runtime.pipeline.stores.postgres.tables.session import DatabaseSnapshot


def test_remarks_are_looked_up_at_once_and_then_once_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, snapshot = list[DatabaseSnapshot](), Mock(DatabaseSnapshot)

    def look(present: DatabaseSnapshot) -> Sequence[str]:
        looks.append(present)
        return ["one", f"look {len(looks)}"]

    remarks = CatalogRemarks(look)
    said = list[tuple[bool, str]]()
    for now_s in (5.0, 64.9, 65.0, 65.1, 125.0):
        monkeypatch.setattr(time, "monotonic", lambda now_s=now_s: now_s)
        is_due = remarks.is_due
        remarks.refresh(snapshot)
        said.append((is_due, remarks.text))
    first, second, third = (f"one; look {number}" for number in (1, 2, 3))
    assert said == [(True, first), (False, first), (True, second), (False, second), (True, third)]
    assert looks == [snapshot] * 3


@pytest.mark.parametrize(
    ("kept", "most", "reread", "told"),
    [
        (49, 100, 255, ""),
        (50, None, 255, ""),
        (
            50,
            100,
            255,
            "the slot s keeps 50 MB of the server's log, and is lost with 100 MB"
            " (max_slot_wal_keep_size)",
        ),
        (
            0,
            None,
            256,
            "each look has the server read 256 MB of its log again, for a transaction is open since"
            " then (backend_xid in pg_stat_activity, pg_prepared_xacts)",
        ),
    ],
)
def test_a_slot_that_keeps_much_is_remarked(
    kept: int, most: int | None, reread: int, told: str
) -> None:
    remarks, size = LogRemarks("s", None), 1 << 20
    state = Mock(SlotState, kept_bytes=kept * size, reread_bytes=reread * size)
    state.most_bytes = None if most is None else most * size
    remarks.set_slot_state(state)
    assert remarks.text == told


def test_changes_that_were_left_out_are_remarked() -> None:
    catalog = CatalogRemarks(lambda _: [], "of the catalog")
    names = frozenset({TableName("public", "b"), TableName("public", "a")})
    remarks = LogRemarks("s", catalog, left_out=2, emptied=names)
    assert remarks.text == (
        "2 updates were left out of rows that are deleted since: the log does not have their large"
        " values, unless the table's REPLICA IDENTITY is FULL; a TRUNCATE of public.a, public.b was"
        " left out: it emptied a part of the partitioned table, and a row that tells of it would"
        " empty all of its target; of the catalog"
    )
