# pyright: basic
"""What would leave rows of a target as they were is refused: publications, replica identities."""

from collections.abc import Callable, Mapping, Sequence
from typing import LiteralString

import pytest

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import BadInput
from fairlead_tests.postgres_pipes import AMPLE, Reading, sink_config, source_config
from fairlead_tests.postgres_server import Database

Read = Callable[..., Reading]
TABLE = "CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE, v text)"
INCLUDE = "source.table.include.list"


def upserting(database: Database, **given: str) -> Mapping[str, str]:
    """Return the config of a connector by the log into a table of the database."""
    source = source_config(database, {"mode": "log", "table_include_list": r"public\.t"})
    sink = sink_config(
        database,
        table_name_format="target",
        insert_mode="upsert",
        pk_mode="record_value",
        auto_create="true",
        delete_enabled="true",
        **given,
    )
    return {**source, **{key: each for key, each in sink.items() if key.startswith("sink.")}}


@pytest.mark.parametrize(
    ("publication", "told"),
    [
        ("TABLE t WHERE (v = 'eu')", r"publishes public.t WHERE (v = 'eu'::text): what the"),
        ("TABLE t (id, code)", "publishes public.t without v: what the snapshot has beside that"),
    ],
)
def test_a_publication_of_a_part_of_a_table_is_refused_unless_there_is_no_snapshot(
    database: Database, read_log: Read, publication: str, told: str
) -> None:
    database.run(TABLE)
    database.run("ALTER TABLE t REPLICA IDENTITY FULL")
    with database.session() as session:
        session.execute(f"CREATE PUBLICATION p FOR {publication}".encode())
        if "WHERE" not in publication:
            session.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    given = {"publication_name": "p", "publication_autocreate_mode": "disabled"}
    config = source_config(database, {"mode": "log", **given})
    errors = SparkPipeline.probe(config, ExternalAccess()).errors
    assert [*errors] == [INCLUDE]
    assert told in errors[INCLUDE]
    with pytest.raises(BadInput, match="the publication p publishes public"):
        read_log(**given).begin()
    reading = read_log(**given, snapshot_mode="no_data")
    assert reading.changes("id") == []
    database.run("INSERT INTO t VALUES (1, 'a', 'eu')")
    assert reading.changes("id") == [("c", 1)]


@pytest.mark.parametrize(
    ("publish", "told", "skipped"),
    [
        ("insert", "UPDATE and DELETE", "u,d"),
        ("insert, update, truncate", "DELETE", "d"),
        ("update, delete", "INSERT", "c"),
        ("truncate", "INSERT and UPDATE and DELETE", "c,u,d"),
    ],
)
def test_a_publication_without_some_changes_is_refused_unless_they_are_to_be_skipped(
    database: Database, read_log: Read, publish: str, told: str, skipped: str
) -> None:
    database.run(TABLE)
    with database.session() as session:
        session.execute(f"CREATE PUBLICATION p FOR TABLE t WITH (publish = '{publish}')".encode())
    with pytest.raises(
        BadInput,
        match=rf"p does not publish {told}, so .*source.skipped.operations={skipped}\. What",
    ):
        read_log(publication_name="p").begin()
    if skipped == "d":
        with pytest.raises(BadInput, match="p does not publish DELETE"):
            read_log(publication_name="p", skipped_operations="u,t").begin()
    read_log(publication_name="p", skipped_operations=skipped).begin()


def test_a_publication_without_truncate_is_told(database: Database, read_log: Read) -> None:
    database.run(TABLE)
    database.run("CREATE PUBLICATION p FOR TABLE t WITH (publish = 'insert, update, delete')")
    told = (
        "the publication p does not publish TRUNCATE: rows that one removes stay; "
        "source.skipped.operations=t says that this is meant"
    )
    for skipped, remark in (("none", told), ("t", "")):
        given = {"publication_name": "p", "skipped_operations": skipped}
        config = source_config(database, {"mode": "log", **given})
        found = SparkPipeline.probe(config, ExternalAccess())
        assert (found.errors, found.warnings) == ({}, (told,) if remark else ())
        reading = read_log(**given)
        reading.take()
        assert reading.sources[0].plan(reading.offsets, AMPLE).remark == remark


@pytest.mark.parametrize(
    ("identity", "fields", "lacking"),
    [
        ("USING INDEX t_code_key", "id", "id"),
        ("USING INDEX t_code_key", "", "id"),
        ("USING INDEX t_code_key", "code, id", "id"),
        ("USING INDEX t_code_key", "code", ""),
        ("USING INDEX t_code_key", "made", "id"),
        ("DEFAULT", "id", ""),
        ("DEFAULT", "code", "code"),
        ("DEFAULT", "made", ""),
        ("FULL", "code", ""),
        ("FULL", "v", ""),
    ],
)
def test_a_key_of_the_target_that_the_log_does_not_have_is_refused(
    database: Database, identity: str, fields: str, lacking: str
) -> None:
    database.run(TABLE)
    with database.session() as session:
        session.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}".encode())
    config = {**upserting(database, pk_fields=fields)}
    told = (
        "public.t: the log has only the columns of its replica identity ({}) of a row before its "
        "change, and the key of the target has {}: a row that is deleted, or whose {} changes, "
        'would stay in the target. ALTER TABLE "public"."t" REPLICA IDENTITY FULL, or set '
        "sink.pk.fields to columns of {}"
    )
    of = "code" if "INDEX" in identity else "id"
    wanted = {INCLUDE: told.format(of, lacking, lacking, of)} if lacking else {}
    assert SparkPipeline.probe(config, ExternalAccess()).errors == wanted
    reading = Reading(database, config)
    try:
        if lacking:
            with pytest.raises(BadInput, match=r"public\.t: the log has only the columns of its"):
                reading.begin()
        else:
            reading.begin()
    finally:
        reading.close()


def test_where_the_target_has_no_key_an_identity_without_the_primary_key_is_told(
    database: Database, read_log: Read
) -> None:
    database.run(TABLE)
    database.run("ALTER TABLE t REPLICA IDENTITY USING INDEX t_code_key")
    reading = read_log()
    reading.take()
    assert reading.sources[0].plan(reading.offsets, AMPLE).remark == (
        "deletes of public.t have only the columns of its replica identity (code), and a change of "
        "id, its primary key, is an update that does not tell the old one: REPLICA IDENTITY FULL "
        "has both"
    )


KEYED: Sequence[LiteralString] = (
    "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x')",
    "UPDATE t SET v = 'y' WHERE id = 1",
    "UPDATE t SET code = 'c' WHERE id = 2",
    "UPDATE t SET id = 3 WHERE id = 1",
    "DELETE FROM t WHERE id = 3",
)


@pytest.mark.parametrize(
    ("made", "fields", "told"),
    [
        (  # the primary key of the table is a key as well
            TABLE,
            "code",
            [
                *(("c", 1, "a", "x"), ("c", 2, "b", "x"), ("u", 1, "a", "y")),
                *(("d", 2, "b", "x"), ("c", 2, "c", "x")),
                *(("d", 1, "a", "y"), ("c", 3, "a", "y"), ("d", 3, "a", "y")),
            ],
        ),
        (
            "CREATE TABLE t (id int, code text, v text)",
            "code",
            [
                *(("c", 1, "a", "x"), ("c", 2, "b", "x"), ("u", 1, "a", "y")),
                *(("d", 2, "b", "x"), ("c", 2, "c", "x")),
                *(("u", 3, "a", "y"), ("d", 3, "a", "y")),
            ],
        ),
        (  # nobody knows what a transform makes the key of
            "CREATE TABLE t (id int, code text, v text)",
            "made",
            [
                *(("c", 1, "a", "x"), ("c", 2, "b", "x")),
                *(("d", 1, "a", "x"), ("c", 1, "a", "y")),
                *(("d", 2, "b", "x"), ("c", 2, "c", "x")),
                *(("d", 1, "a", "y"), ("c", 3, "a", "y"), ("d", 3, "a", "y")),
            ],
        ),
    ],
    ids=["primary-key", "no-key", "made-key"],
)
def test_with_a_full_identity_a_row_whose_key_in_the_target_changes_is_deleted_and_created(
    database: Database, made: LiteralString, fields: str, told: Sequence[tuple[object, ...]]
) -> None:
    database.run(made)
    database.run("ALTER TABLE t REPLICA IDENTITY FULL")
    reading = Reading(database, {**upserting(database, pk_fields=fields)})
    try:
        assert reading.changes("id") == []
        for each in KEYED:
            database.run(each)
        assert reading.changes("id", "code", "v") == told
    finally:
        reading.close()
