# pyright: basic
"""A row that is not read is told: of tables that inherit, that are unlogged, foreign, or hidden."""

from collections.abc import Callable, Iterator, Sequence
from typing import LiteralString

import pytest

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import BadInput, NotReady
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.postgres.tables import catalog
from fairlead_tests.postgres_pipes import AMPLE, Reading, source_config
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
SMALL = Limit(7, 1 << 20, 4096)
ROLE = {"connection_user": "app", "connection_password": "app-pass"}
FAMILY: Sequence[LiteralString] = (
    "CREATE TABLE p (id int PRIMARY KEY, v text)",
    "CREATE TABLE c (more int, PRIMARY KEY (id)) INHERITS (p)",
    "CREATE TABLE g () INHERITS (c)",
    "INSERT INTO p SELECT i, 'p' FROM generate_series(1, 100) i",
    "INSERT INTO c SELECT i, 'c' FROM generate_series(101, 200) i",
    "INSERT INTO g SELECT i, 'g' FROM generate_series(201, 300) i",
)
"""A table, one that inherits from it, and one that inherits from that, without a key."""


def remark_of(reading: Reading) -> str:
    """Read all, and return what the status says then."""
    reading.take()
    return reading.sources[0].plan(reading.offsets, AMPLE).remark


@pytest.fixture
def read(read: Read, database: Database) -> Iterator[Read]:
    """Return what reads a database by a config; a role of it may see less than all."""
    database.run("DROP ROLE IF EXISTS app")
    database.run("CREATE ROLE app LOGIN PASSWORD 'app-pass' REPLICATION")
    database.run("GRANT USAGE ON SCHEMA public TO app")
    yield read
    database.run("DROP OWNED BY app")


@pytest.mark.parametrize("limit", [AMPLE, SMALL], ids=["ample", "small"])
@pytest.mark.parametrize("mode", ["bulk", "xmin", "incrementing", "log"])
@pytest.mark.parametrize(
    ("include", "ids"),
    [
        (r"public\.[pcg]", range(1, 301)),
        (r"public\.p", range(1, 101)),
        (r"public\.c", range(101, 201)),
    ],
)
def test_a_table_is_read_without_those_that_inherit_from_it(
    database: Database, read: Read, include: str, ids: range, mode: str, limit: Limit
) -> None:
    for each in FAMILY:
        database.run(each)
    database.run("ALTER TABLE g REPLICA IDENTITY FULL")
    column = {"incrementing_column_name": "id"} if mode == "incrementing" else {}
    reading = read(mode=mode, table_include_list=include, **column)
    assert [n for (n,) in reading.rows("id", limit=limit)] == [*ids]
    if mode == "bulk":
        return
    for at, table in enumerate(("p", "c", "g")):
        insert = f"INSERT INTO {table} SELECT i FROM generate_series(%s::int, %s::int) i"
        with database.session() as session:
            session.execute(insert.encode(), (301 + 100 * at, 400 + 100 * at))
    assert [n for (n,) in reading.rows("id", limit=limit)] == [n + 300 for n in ids]


@pytest.mark.parametrize("mode", ["xmin", "log"])
def test_tables_that_inherit_and_are_not_read_are_told(
    database: Database, read: Read, mode: str
) -> None:
    for each in FAMILY:
        database.run(each)
    given = {"mode": mode, "table_include_list": r"public\.p"}
    told = (
        "public.c, public.g is not read, although it inherits from public.p, for tables are read "
        "without those that inherit from them: name it in source.table.include.list, or in "
        "source.table.exclude.list"
    )
    found = SparkPipeline.probe(source_config(database, given), ExternalAccess())
    assert (found.errors, found.warnings) == ({}, (told,))
    assert remark_of(read(**given)) == told
    assert remark_of(read(**given, table_exclude_list=r"public\.[cg]")) == ""


@pytest.mark.parametrize("mode", ["xmin", "log"])
def test_the_look_at_the_catalog_waits_for_no_lock_of_a_table(
    database: Database, read: Read, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE a (id int PRIMARY KEY)")
    database.run("CREATE TABLE z (id int PRIMARY KEY)")
    monkeypatch.setattr(catalog, "_REMARK_PAUSE_S", 0.0)  # it looks each time
    reading = read(mode=mode)
    reading.begin(2)  # in mode xmin, the other task reads z
    assert reading.rows("id") == []
    database.run("INSERT INTO a VALUES (1)")
    with database.session() as session:
        session.execute("LOCK TABLE z IN ACCESS EXCLUSIVE MODE")
        plans = [reading.sources[0].plan(reading.offsets, AMPLE) for _ in range(2)]
    assert 1 in [each.rows for each in plans]


def test_the_publication_of_a_table_does_not_have_those_that_inherit_from_it(
    database: Database, read: Read
) -> None:
    for each in FAMILY:
        database.run(each)
    assert len(read(mode="log", table_include_list=r"public\.p").rows("id")) == 100
    database.run("UPDATE g SET v = 'new'")  # would be refused, as it has no replica identity


@pytest.mark.parametrize("made", ["filtered", "all_tables"])
def test_an_unlogged_table_beside_others_is_told_and_not_read_by_the_log(
    database: Database, read: Read, made: str
) -> None:
    database.run("CREATE TABLE good (id int PRIMARY KEY)")
    database.run("CREATE UNLOGGED TABLE cache (id int PRIMARY KEY)")
    database.run("CREATE TABLE o (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    database.run("CREATE TABLE o_1 PARTITION OF o FOR VALUES FROM (1) TO (10)")
    database.run("CREATE UNLOGGED TABLE o_2 PARTITION OF o FOR VALUES FROM (10) TO (20)")
    database.run("CREATE VIEW seen AS SELECT 1 AS id")
    database.run("CREATE MATERIALIZED VIEW kept AS SELECT 1 AS id")
    with database.session() as session:
        session.execute("CREATE TEMP TABLE mine (id int PRIMARY KEY)")
        session.commit()
        database.run("INSERT INTO good VALUES (1)")
        database.run("INSERT INTO cache VALUES (1)")
        database.run("INSERT INTO o VALUES (1)")
        reading = read(mode="log", publication_autocreate_mode=made)
        told = (
            "public.cache, public.o_2 is not read, for it is unlogged, and its changes are in no "
            "log: source.mode=xmin reads it; or ALTER TABLE … SET LOGGED, or "
            "source.table.exclude.list"
        )
        assert reading.rows("_topic") == [("public.good",), ("public.o",)]
        assert remark_of(reading) == told
    database.run("INSERT INTO cache VALUES (2)")
    database.run("ALTER TABLE cache SET LOGGED")
    reading.begin()
    assert reading.rows("_topic", "id") == [("public.cache", 1), ("public.cache", 2)]
    assert read(mode="xmin").rows("_topic", "id") == [
        *(("public.cache", 1), ("public.cache", 2), ("public.good", 1), ("public.o", 1)),
    ]


def test_unlogged_tables_alone_are_refused_where_they_are_named(
    database: Database, read: Read
) -> None:
    database.run("CREATE UNLOGGED TABLE cache (id int PRIMARY KEY)")
    config = source_config(database, {"mode": "log", "table_include_list": r"public\.cache"})
    (told,) = SparkPipeline.probe(config, ExternalAccess()).errors.values()
    assert told.startswith("public.cache is not read, for it is unlogged, and its changes are in")
    with pytest.raises(NotReady, match=r"no table matches yet; public\.cache is not read, for"):
        read(mode="log").begin()


@pytest.mark.parametrize("mode", ["xmin", "log"])
def test_foreign_tables_below_a_table_that_is_read_are_told(
    database: Database, read: Read, mode: str
) -> None:
    database.run("DROP FOREIGN DATA WRAPPER IF EXISTS far CASCADE")
    database.run("CREATE FOREIGN DATA WRAPPER far")
    database.run("CREATE SERVER there FOREIGN DATA WRAPPER far")
    database.run("CREATE TABLE o (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    database.run("CREATE TABLE o_1 PARTITION OF o FOR VALUES FROM (1) TO (10)")
    database.run("CREATE TABLE p (id int PRIMARY KEY)")
    try:
        database.run("ALTER TABLE o DROP CONSTRAINT o_pkey")
        database.run(
            "CREATE FOREIGN TABLE o_2 PARTITION OF o FOR VALUES FROM (10) TO (20) SERVER there"
        )
        database.run("CREATE FOREIGN TABLE f () INHERITS (p) SERVER there")
        database.run("ALTER TABLE o_1 ADD PRIMARY KEY (id)")
        database.run("INSERT INTO o_1 VALUES (1)")
        reading = read(mode=mode, table_include_list=r"public\.(o|p)")
        assert remark_of(reading) == (
            "public.f is not read, although it inherits from public.p, for tables are read without "
            "those that inherit from them: name it in source.query, or in "
            "source.table.exclude.list; public.o_2 is not read, for it is a foreign table, "
            "although a partition of public.o: name it in source.query, or in "
            "source.table.exclude.list"
        )
    finally:
        database.run("DROP FOREIGN DATA WRAPPER far CASCADE")


@pytest.mark.parametrize(
    ("policies", "is_hidden"),
    [
        ((), True),
        (("FOR SELECT USING (owner = 'me')",), True),
        (("FOR SELECT USING (true)",), False),
        (("FOR ALL TO app USING (true)", "FOR SELECT USING (owner = 'me')"), False),
        (("FOR SELECT TO postgres USING (true)",), True),
        (("FOR INSERT WITH CHECK (true)",), True),
        (("USING (true)", "AS RESTRICTIVE FOR SELECT USING (owner = 'me')"), True),
    ],
)
def test_row_security_that_hides_rows_is_told(
    database: Database, read: Read, policies: Sequence[str], *, is_hidden: bool
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, owner text)")
    database.run("INSERT INTO t VALUES (1, 'me'), (2, 'you')")
    database.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    database.run("GRANT SELECT ON t TO app")
    for at, each in enumerate(policies):
        with database.session() as session:
            session.execute(f"CREATE POLICY p{at} ON t {each}".encode())
    told = (
        "row security hides rows of public.t from the role app, and only those that it shows are "
        "read: ALTER ROLE app BYPASSRLS, or a policy FOR SELECT USING (true), shows all"
    )
    given = {"mode": "xmin", **ROLE}
    found = SparkPipeline.probe(source_config(database, given), ExternalAccess())
    assert (found.errors, found.warnings) == ({}, (told,) if is_hidden else ())
    reading = read(**given)
    assert remark_of(reading) == (told if is_hidden else "")
    config = source_config(database, {"mode": "log", "publication_name": "p", **ROLE})
    database.run("CREATE PUBLICATION p FOR TABLE t")
    errors = SparkPipeline.probe(config, ExternalAccess()).errors
    hides = "row security hides rows of public.t from the role app, while the log has the changes"
    assert [each.startswith(hides) for each in errors.values()] == [True] * is_hidden
    if is_hidden:
        with pytest.raises(BadInput, match=hides):
            read(mode="log", publication_name="p", **ROLE).begin()
    database.run("ALTER ROLE app BYPASSRLS")
    assert SparkPipeline.probe(source_config(database, given), ExternalAccess()).warnings == ()
    assert SparkPipeline.probe(config, ExternalAccess()).errors == {}
