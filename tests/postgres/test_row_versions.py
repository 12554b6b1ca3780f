# pyright: basic
"""The versions of rows that changes tell, and which values they take from earlier ones."""

from collections.abc import Sequence

import pytest

from fairlead.runtime.pipeline.stores.postgres.names import TableName
from fairlead.runtime.pipeline.stores.postgres.source.log.changes.pgoutput import (
    UNCHANGED,
    Change,
    Operation,
    Relation,
    Values,
)
from fairlead.runtime.pipeline.stores.postgres.source.log.changes.positions import Position
from fairlead.runtime.pipeline.stores.postgres.source.log.changes.versions import (
    RowVersion,
    known_before,
    versions_of,
)

Told = tuple[str, Values]
TABLE = Relation(1, TableName("public", "t"), "d", ())


def change(operation: Operation, values: Values, old: Values = ()) -> Change:
    return Change(Position(1, 1), 1, 0, TABLE, operation, values, old, 1)


def versions(told: Sequence[Told]) -> list[RowVersion]:
    kinds = [(Operation(letter), values) for letter, values in told]
    return [RowVersion(change(kind, values), kind, values) for kind, values in kinds]


@pytest.mark.parametrize(
    ("key", "told", "found"),
    [
        (  # from the row before, and on from there
            (0,),
            [("c", ("1", "big")), ("u", ("1", UNCHANGED)), ("u", ("1", UNCHANGED))],
            ["big", "big", "big"],
        ),
        ((0,), [("c", ("1", "big")), ("u", ("2", UNCHANGED))], ["big", UNCHANGED]),
        (
            (0,),
            [("c", ("1", "big")), ("u", ("1", "new")), ("u", ("1", UNCHANGED))],
            ["big", "new", "new"],
        ),
        (  # a row that is deleted has nothing to give to the next one of its key
            (0,),
            [("c", ("1", "big")), ("d", ("1", None)), ("u", ("1", UNCHANGED))],
            ["big", None, UNCHANGED],
        ),
        (
            (0,),
            [("c", ("1", "big")), ("t", (None, None)), ("u", ("1", UNCHANGED))],
            ["big", None, UNCHANGED],
        ),
        ((), [("c", ("1", "big")), ("u", ("1", UNCHANGED))], ["big", UNCHANGED]),
        ((0,), [("c", ("1", "big")), ("u", ("1", "new"))], ["big", "new"]),
    ],
)
def test_a_value_that_did_not_change_is_that_of_the_version_before(
    key: tuple[int, ...], told: Sequence[Told], found: Sequence[object]
) -> None:
    made = known_before(versions(told), key)
    assert [each.values[1] for each in made] == found
    assert [(each.operation.value, each.values[0]) for each in made] == [
        (letter, values[0]) for letter, values in told
    ]


def test_only_values_that_are_missing_are_filled_in() -> None:
    (row,) = versions([("u", ("1", UNCHANGED, "known"))])
    assert row.with_values({"v1": "found", "v2": "other"}, (1, 2)).values == ("1", "found", "known")
    assert not row.is_whole


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ((0,), [("u", ("1", "b", "y"))]),
        ((0, 1), [("d", ("1", "a", "x")), ("c", ("1", "b", "y"))]),
        ((), [("u", ("1", "b", "y"))]),
        ((0, 1, 2), [("d", ("1", "a", "x")), ("c", ("1", "b", "y"))]),
    ],
)
def test_an_update_of_the_key_is_a_delete_and_a_create(
    key: tuple[int, ...], told: Sequence[Told]
) -> None:
    made = versions_of([change(Operation.UPDATE, ("1", "b", "y"), ("1", "a", "x"))], key)
    assert [(each.operation.value, each.values) for each in made] == told
