"""Parts of reading tables that need no server: how they are dealt, and the ends of time."""

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.stores.postgres.tables import columns
from fairlead.runtime.pipeline.stores.postgres.tables.shares import (
    TableShare,
    TaskShare,
    deal,
    shares_by_table,
)


def table(name: str, chunks: int) -> TableShare:
    return TableShare("public", name, "", 1, 9, None, 0, chunks, is_follower=True, chunks=chunks)


def dealt(*shares: TaskShare) -> list[list[tuple[str, int, int, bool]]]:
    return [
        [(each.table, each.first, each.end, each.is_follower) for each in share.tables]
        for share in shares
    ]


def test_chunks_of_tables_are_dealt_evenly_and_one_task_follows_each_table() -> None:
    tables = [table("a", 5), table("b", 0), table("c", 2)]
    shares = deal(tables, 3, is_cut=True)
    assert dealt(*shares) == [
        [("a", 0, 3, True)],
        [("a", 3, 5, False), ("b", 0, 0, True)],
        [("c", 0, 2, True)],
    ]
    assert shares_by_table(shares) == {each.name: each for each in tables}
    assert dealt(*deal([table("a", 4), table("b", 4), table("c", 4)], 2, is_cut=True)) == [
        [("a", 0, 4, True), ("c", 0, 2, True)],
        [("b", 0, 4, True), ("c", 2, 4, False)],
    ]


def test_tables_that_are_not_cut_are_dealt_whole_and_no_task_is_without_any() -> None:
    tables = [table("a", 5), table("b", 0), table("c", 2)]
    assert dealt(*deal(tables, 2, is_cut=False)) == [
        [("a", 0, 5, True)],
        [("b", 0, 0, True), ("c", 0, 2, True)],
    ]
    assert dealt(*deal([table("b", 0)], 4, is_cut=True)) == [[("b", 0, 0, True)]]
    assert deal([], 4, is_cut=True) == []


@pytest.mark.parametrize(
    ("kind", "number", "wrapped", "ends"),
    [
        (
            pa.timestamp("us"),
            pa.int64(),
            [-9_222_425_352_054_775_809, -9_222_425_352_054_775_808],
            [253_402_300_799_999_999, -62_135_596_800_000_000],
        ),
        (pa.date32(), pa.int32(), [-2_147_472_692, -2_147_472_691], [2_932_896, -719_162]),
    ],
)
def test_infinities_become_the_first_and_the_last_time_of_spark(
    kind: pa.DataType, number: pa.DataType, wrapped: list[int], ends: list[int]
) -> None:
    def made(numbers: list[int | None]) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(numbers, number).cast(kind)])

    assert columns._finite(made([1, None, *wrapped])) == made([1, None, *ends])
    usual = made([1, None, 2])
    assert columns._finite(usual) is usual
    nested = pa.list_(kind)
    lists, wanted = (
        pa.chunked_array([pa.array([[1, each], None, []], pa.list_(number)).cast(nested)])
        for each in (wrapped[0], ends[0])
    )
    assert columns._finite(lists) == wanted
    others = pa.chunked_array([pa.array([1, 2])])
    assert columns._finite(others) is others
