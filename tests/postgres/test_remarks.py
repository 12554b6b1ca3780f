"""Remarks about the tables in the catalog are looked up again now and then."""

import time
from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from fairlead.runtime.pipeline.connectors.postgres.tables.remarks import CatalogRemarks
from fairlead.runtime.pipeline.connectors.postgres.tables.session import DatabaseSnapshot


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
