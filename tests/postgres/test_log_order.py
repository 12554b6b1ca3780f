# pyright: basic
"""Changes of tables whose rows one target collects come in the order of the log."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, LiteralString

import pytest

from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead_tests.postgres_pipes import AMPLE, Reading
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
SMALL = Limit(7, 1 << 20, 4096)
PARTITIONED: Sequence[LiteralString] = (
    "CREATE TABLE o (id int, status text, v int, PRIMARY KEY (id, status))"
    " PARTITION BY LIST (status)",
    "CREATE TABLE o_open PARTITION OF o FOR VALUES IN ('open')",
    "CREATE TABLE o_done (v int, gone int, status text NOT NULL, id int NOT NULL,"
    " PRIMARY KEY (id, status))",
    "ALTER TABLE o_done DROP gone",
    "ALTER TABLE o ATTACH PARTITION o_done FOR VALUES IN ('done')",
)
"""A table whose partitions have their columns in another order."""
LIKE_EACH_OTHER: Sequence[LiteralString] = (
    "CREATE TABLE o_open (id int PRIMARY KEY, status text, v int)",
    "CREATE TABLE o_done (status text, v int, id int PRIMARY KEY)",
)
"""Tables that are alike, whose rows move by DELETE and INSERT."""
BY_UPDATE: dict[str, LiteralString] = {
    "open": "UPDATE o SET status = 'done' WHERE status = 'open' AND id <= 10",
    "done": "UPDATE o SET status = 'open' WHERE status = 'done' AND id <= 30",
}
BY_HAND: dict[str, LiteralString] = {
    "open": "WITH gone AS (DELETE FROM o_open WHERE id <= 10 RETURNING *)"
    " INSERT INTO o_done (id, status, v) SELECT id, 'done', v FROM gone",
    "done": "WITH gone AS (DELETE FROM o_done WHERE id <= 30 RETURNING *)"
    " INSERT INTO o_open SELECT id, 'open', v FROM gone",
}


def applied(target: dict[int, Any], changes: Iterable[tuple[Any, ...]]) -> dict[int, Any]:
    """Apply changes with an id, in their order, as a target does whose key is the id."""
    for operation, number, *values in changes:
        if operation == "d":
            target.pop(number, None)
        elif number is not None:
            target[number] = values
    return target


@pytest.mark.parametrize("limit", [AMPLE, SMALL], ids=["ample", "small"])
@pytest.mark.parametrize("order", [("open", "done"), ("done", "open"), ("open",), ("done",)])
@pytest.mark.parametrize(
    ("tables", "moves"),
    [(PARTITIONED, BY_UPDATE), (LIKE_EACH_OTHER, BY_HAND)],
    ids=["partitions", "tables"],
)
def test_a_row_that_moves_to_another_table_is_deleted_before_it_is_created(
    database: Database,
    read_log: Read,
    tables: Sequence[LiteralString],
    moves: dict[str, LiteralString],
    order: tuple[str, ...],
    limit: Limit,
) -> None:
    for each in tables:
        database.run(each)
    reading = read_log(table_include_list=r"public\.(o|o_.*)")
    reading.begin()
    database.run("INSERT INTO o_open SELECT i, 'open', 0 FROM generate_series(1, 20) i")
    database.run(
        "INSERT INTO o_done (id, status, v) SELECT i, 'done', 0 FROM generate_series(21, 40) i"
    )
    target = applied({}, reading.changes("id", "status", "v", limit=limit))
    with database.session() as session:
        for status in order:  # what comes first decides which table is the first of the window
            last = "o_done" if status == "open" else "o_open"
            session.execute(f"UPDATE {last} SET v = v + 1 WHERE id > 10".encode())
            session.execute(moves[status])
    found = reading.changes("id", "status", "v", "__lsn", "__seq", limit=limit)
    there = database.run(
        "SELECT id, status, v FROM o_open UNION ALL SELECT id, status, v FROM o_done"
    )
    rows = [each[:4] for each in found]
    assert applied(target, rows) == {number: [*values] for number, *values in there}
    assert len(found) == len({(each[0], *each[4:]) for each in found})  # nothing comes twice
    assert {each[0] for each in found} == {"u", "d", "c"}


def test_a_row_moves_on_as_often_as_it_likes(database: Database, read_log: Read) -> None:
    for each in PARTITIONED:
        database.run(each)
    reading = read_log(table_include_list=r"public\.o")
    assert reading.changes("id") == []
    database.run("INSERT INTO o VALUES (1, 'open', 0)")
    for n, status in enumerate(("done", "open", "done", "open", "done"), 1):
        database.run("UPDATE o SET status = %s, v = %s", status, n)
    (table,) = reading.take()
    told = zip(*(table[name].to_pylist() for name in ("__op", "status", "v")), strict=True)
    assert [*told] == [
        ("c", "open", 0),
        *(("d", "open", None), ("c", "done", 1), ("d", "done", None), ("c", "open", 2)),
        *(("d", "open", None), ("c", "done", 3), ("d", "done", None), ("c", "open", 4)),
        *(("d", "open", None), ("c", "done", 5)),
    ]
    assert set(table["_topic"].to_pylist()) == {"public.o"}


def test_large_values_of_a_row_that_moves_are_there(database: Database, read_log: Read) -> None:
    for each in PARTITIONED:
        database.run(each)
    database.run("ALTER TABLE o ADD big text NOT NULL DEFAULT ''")
    database.run("ALTER TABLE o_open ALTER big SET STORAGE EXTERNAL")
    database.run("ALTER TABLE o_done ALTER big SET STORAGE EXTERNAL")
    reading = read_log(table_include_list=r"public\.o")
    assert reading.changes("id") == []
    database.run("INSERT INTO o VALUES (1, 'open', 0, repeat('x', 9000))")
    database.run("UPDATE o SET status = 'done'")
    database.run("UPDATE o SET v = 1")
    assert reading.changes("status", "v", "big") == [
        *(("c", "open", 0, "x" * 9000), ("d", "open", None, None)),
        *(("c", "done", 0, "x" * 9000), ("u", "done", 1, "x" * 9000)),
    ]


def test_tables_that_are_altered_are_read_in_order(database: Database, read_log: Read) -> None:
    for each in PARTITIONED:
        database.run(each)
    reading = read_log(table_include_list=r"public\.o")
    reading.begin()
    database.run("INSERT INTO o VALUES (1, 'open', 0), (2, 'done', 0)")
    database.run("ALTER TABLE o ADD more int")
    database.run("UPDATE o SET status = 'done', more = 1 WHERE id = 1")
    database.run("ALTER TABLE o DROP more")
    database.run("UPDATE o SET status = 'open' WHERE id = 1")
    assert applied({}, reading.changes("id", "status", "v")) == {
        1: ["open", 0],
        2: ["done", 0],
    }


@pytest.mark.parametrize("limit", [AMPLE, SMALL], ids=["ample", "small"])
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("made", ["filtered", "all_tables", "begun"])
def test_rows_that_move_to_a_partition_that_is_new_are_deleted_before_its_snapshot(
    database: Database, read_log: Read, made: str, tasks: int, limit: Limit
) -> None:
    for each in PARTITIONED:
        database.run(each)
    database.run("INSERT INTO o SELECT i, 'open', 0 FROM generate_series(1, 40) i")
    mode = "filtered" if made == "begun" else made
    reading = read_log(table_include_list=r"public\.o", publication_autocreate_mode=mode)
    reading.begin(tasks=tasks)
    target: dict[int, Any] = {}
    if made != "begun":
        applied(target, reading.changes("id", "status", "v", limit=limit))
    database.run("CREATE TABLE o_late PARTITION OF o FOR VALUES IN ('late')")
    database.run("UPDATE o SET status = 'late' WHERE id <= 20")
    if made == "all_tables":  # the log is read up to the first change of the table that is new
        applied(target, reading.changes("id", "status", "v", limit=limit))
    database.run("UPDATE o SET status = 'late' WHERE id BETWEEN 21 AND 30")
    database.run("UPDATE o SET status = 'open' WHERE id <= 5")
    database.run("DELETE FROM o WHERE id BETWEEN 6 AND 8")
    reading.begin(tasks=tasks)  # the connector looks for new tables
    database.run("UPDATE o SET status = 'open' WHERE id BETWEEN 9 AND 10")
    database.run("UPDATE o SET status = 'late' WHERE id BETWEEN 31 AND 32")
    database.run("UPDATE o SET v = 1 WHERE id BETWEEN 11 AND 12")
    split = reading.split
    found = reading.changes("id", "status", "v", limit=limit)
    there = {number: [*values] for number, *values in database.run("SELECT * FROM o")}
    assert applied(target, found) == there
    reading.begin(tasks=tasks)
    assert (reading.split, reading.changes("id")) == (split, [])
    database.run("UPDATE o SET status = 'done', v = 2")
    found = reading.changes("id", "status", "v", limit=limit)
    assert applied(target, found) == {number: ["done", 2] for number in there}


def test_a_snapshot_that_waits_for_the_log_says_so(database: Database, read_log: Read) -> None:
    for each in PARTITIONED:
        database.run(each)
    reading = read_log(table_include_list=r"public\.o")
    assert reading.changes("id") == []
    database.run("INSERT INTO o VALUES (1, 'open', 0)")
    database.run("CREATE TABLE o_late PARTITION OF o FOR VALUES IN ('late')")
    database.run("INSERT INTO o VALUES (2, 'late', 0)")
    reading.begin(tasks=3)
    log, *others = reading.sources
    remarks = {source.plan(reading.offsets, AMPLE).remark for source in others}
    assert "the snapshot of public.o_late waits until the log is read up to it" in remarks
    plan = log.plan(reading.offsets, AMPLE)
    assert plan.ranges[0]["id"].to_pylist() == [1]
    assert sorted(reading.changes("id")) == [("c", 1), ("r", 2)]


@pytest.mark.parametrize("mode", ["initial", "when_needed"])
def test_a_table_that_was_left_out_for_a_time_is_told_or_read_again(
    database: Database, read_log: Read, mode: str
) -> None:
    for each in PARTITIONED:
        database.run(each)
    database.run("INSERT INTO o VALUES (1, 'open', 0), (2, 'done', 0)")
    reading = read_log(table_include_list=r"public\.o", snapshot_mode=mode)
    assert sorted(reading.changes("id")) == [("r", 1), ("r", 2)]
    database.run("ALTER TABLE o DETACH PARTITION o_done")
    reading.begin()
    database.run("INSERT INTO o_done (id, status, v) VALUES (3, 'done', 0)")
    database.run("INSERT INTO o VALUES (4, 'open', 0)")
    assert reading.changes("id") == [("c", 4)]
    database.run("ALTER TABLE o ATTACH PARTITION o_done FOR VALUES IN ('done')")
    if mode == "initial":
        for _ in range(2):
            with pytest.raises(BadInput, match=r"o_done was read, and then left out for a time"):
                reading.begin()
        for each in [*reading.offsets]:
            if "o_done" in each:
                del reading.offsets[each]
    reading.begin()
    assert sorted(reading.changes("id")) == [("r", 2), ("r", 3)]
    database.run("UPDATE o SET v = 1 WHERE id = 3")
    reading.begin()
    assert reading.changes("id") == [("u", 3)]


def test_a_truncate_of_one_partition_empties_no_target_and_is_told(
    database: Database, read_log: Read
) -> None:
    for each in PARTITIONED:
        database.run(each)
    reading = read_log(table_include_list=r"public\.o")
    assert reading.changes("id") == []
    database.run("INSERT INTO o VALUES (1, 'open', 0), (2, 'done', 0)")
    database.run("TRUNCATE o_open")
    database.run("INSERT INTO o VALUES (3, 'open', 0)")
    assert reading.changes("id") == [("c", 1), ("c", 2), ("c", 3)]
    database.run("TRUNCATE o")
    (source,) = reading.sources
    remark = source.plan(reading.offsets, AMPLE).remark
    assert remark.startswith("a TRUNCATE of public.o_open was left out: it emptied a part of")
    assert reading.changes("id") == [("t", None), ("t", None)]
    database.run("INSERT INTO o VALUES (4, 'open', 0)")
    database.run("TRUNCATE o_open, o_done")
    assert reading.changes("id") == [("c", 4), ("t", None), ("t", None)]


def test_changes_that_come_by_the_root_of_partitions_are_told(
    database: Database, read_log: Read
) -> None:
    for each in PARTITIONED:
        database.run(each)
    reading = read_log(table_include_list=r"public\.o")
    assert reading.changes("id") == []
    ((publication,),) = database.run("SELECT pubname FROM pg_publication")
    with database.server.connected(database.name) as session:
        session.execute(
            f"ALTER PUBLICATION {publication} SET (publish_via_partition_root = true)".encode()
        )
        session.execute(f"ALTER PUBLICATION {publication} SET TABLE o".encode())
    database.run("INSERT INTO o VALUES (1, 'open', 0)")
    for _ in range(2):
        with pytest.raises(BadInput, match=r"public\.o came by their root.* Read the tables again"):
            reading.take()
    with pytest.raises(BadInput, match="publishes partitions by their root"):
        reading.begin()
