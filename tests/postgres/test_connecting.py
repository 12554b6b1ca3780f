"""How a database is reached, and what is told when it is not."""

import re
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.pq import Conninfo

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors import pipeline_keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess
from fairlead.runtime.pipeline.spi.errors import Away
from fairlead.runtime.pipeline.stores.postgres.connecting import (
    Server,
    application_name,
    brief,
    is_away,
)
from fairlead.runtime.pipeline.stores.postgres.names import TableName
from fairlead.runtime.pipeline.stores.postgres.url import ALLOWED, parameters
from fairlead_tests.no_plain_files import no_plain_files
from fairlead_tests.postgres_pipes import sink_config
from fairlead_tests.postgres_server import PASSWORD, Database

POSTGRES = pipeline_keys.SOURCE_TYPES.find("postgres")
BULK = {
    "name": "orders",
    "connector.class": "SparkPipeline",
    "source.type": "postgres",
    "source.mode": "bulk",
    "source.connection.url": "",
    "source.table.include.list": "public.t",
    "sink.format": "parquet",
    "sink.path": "/out",
}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"connection_password": "wrong-pass-phrase"}, "password authentication failed for user"),
        ({"connection_user": "nobody"}, 'password authentication failed for user "nobody"'),
        (
            {"connection_url": "postgresql://127.0.0.1:{port}/none"},
            'database "none" does not exist',
        ),
        ({"schema": "none"}, "there is no schema none: make it, or name another"),
    ],
)
def test_what_no_time_will_mend_is_an_error_of_its_key(
    database: Database, given: dict[str, str], told: str
) -> None:
    port = str(database.server.port)
    given = {"connection_user": "postgres"} | {
        key: value.replace("{port}", port) for key, value in given.items()
    }
    config = sink_config(database, **given)
    ((key, text),) = SparkPipeline.probe(config, ExternalAccess()).errors.items()
    assert key == ("sink.schema" if "schema" in given else "sink.connection.url")
    assert told in text
    assert "pass-phrase" not in text


def test_a_role_that_may_make_no_table_is_an_error_of_the_schema(database: Database) -> None:
    database.run("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    database.run("CREATE SCHEMA lake")
    database.run("GRANT USAGE ON SCHEMA lake TO guest")
    config = sink_config(
        database, connection_user="guest", connection_password="guest", schema="lake"
    )
    errors = SparkPipeline.probe(config, ExternalAccess()).errors
    database.run("DROP SCHEMA lake")
    database.run("DROP ROLE guest")
    told = "guest may not make tables in lake: GRANT CREATE, USAGE ON SCHEMA"
    assert errors == {"sink.schema": told}


def test_a_server_that_is_away_is_a_warning_and_away(database: Database) -> None:
    config = sink_config(database, connection_url="postgresql://postgres@127.0.0.1:1/none")
    findings = SparkPipeline.probe(config, ExternalAccess())
    (warning,) = (each for each in findings.warnings if "sink" in each)
    assert "127.0.0.1:1/none" in warning
    assert "Connection refused" in warning
    server = Server.of("sink", config)
    for connect in (server.connect, server.connect_adbc):
        with pytest.raises(Away, match="Connection refused") as told:
            connect()
        assert PASSWORD not in str(told.value)
    assert PASSWORD not in repr(server)


def test_a_wrong_password_is_wrong_for_both_drivers(database: Database) -> None:
    server = Server.of("sink", sink_config(database, connection_password="wrong-pass-phrase"))
    for connect in (server.connect, server.connect_adbc):
        with pytest.raises(ConfigInvalid, match=r"sink\.connection\.url: .*authentication failed"):
            connect()


def test_a_statement_that_takes_too_long_is_ended_and_told(database: Database) -> None:
    server = Server.of("sink", sink_config(database, query_timeout_ms="1000"))
    with server.connect() as connection, pytest.raises(psycopg.errors.QueryCanceled) as told:
        connection.execute("SELECT pg_sleep(30)")
    assert is_away(told.value)
    assert brief(str(told.value)) == (
        "canceling statement due to statement timeout (query.timeout.ms)"
    )


def test_a_database_that_is_there_has_nothing_to_tell(database: Database) -> None:
    findings = SparkPipeline.probe(sink_config(database), ExternalAccess())
    assert not [each for each in (*findings.errors, *findings.warnings) if "sink" in each]


def test_a_url_may_be_one_of_jdbc() -> None:
    url = "jdbc:postgresql://h:1/d?user=u&ssl=true&currentSchema=s&reWriteBatchedInserts=true"
    assert parameters(url) == {
        "host": "h",
        "port": "1",
        "dbname": "d",
        "user": "u",
        "sslmode": "require",
        "options": "-c search_path=s",
    }


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nonsense with secret", "is no URL of a database"),
        ("jdbc:oracle:thin:@h", "is no URL of a database"),
        ("jdbc:postgresql://h/d?prepareThreshold=0", "the parameter prepareThreshold of a JDBC"),
        ("postgresql://u:secret@h/d", r"holds a password: give it as sink\.connection\.password"),
    ],
)
def test_a_url_that_will_not_do_is_told_without_its_secrets(
    database: Database, url: str, told: str
) -> None:
    errors = SparkPipeline.validate(sink_config(database, connection_url=url)).errors
    (text,) = errors["sink.connection.url"]
    assert "secret" not in text
    assert re.search(told, text)


def test_modes_that_need_a_key_say_so(database: Database) -> None:
    config = sink_config(database, insert_mode="upsert")
    assert SparkPipeline.validate(config).errors == {
        "sink.pk.mode": ("sink.insert.mode=upsert needs a key: record_key or record_value",)
    }


def test_names_of_sessions_differ_where_tasks_and_clusters_do() -> None:
    long, other = Resource("ä" * 90, 1), Resource("ä" * 90, 2)
    names = {application_name("sink", each, cluster) for each in (long, other) for cluster in "ab"}
    assert len(names) == 4
    assert all(len(name.encode()) <= 63 for name in names)


def test_names_of_tables_are_read_as_sql_reads_them() -> None:
    assert TableName.parse("t", "public") == ("public", "t")
    assert TableName.parse("a.b", "public") == ("a", "b")
    assert TableName.parse('"a.b"."C ""d"', "public") == ("a.b", 'C "d')
    for wrong in ("", "a.", ".b"):
        with pytest.raises(ValueError, match="is no name of a table"):
            TableName.parse(wrong, "public")


def test_a_database_that_takes_no_connections_for_now_is_away(database: Database) -> None:
    made = database.server.empty("closed")
    server = Server.of("sink", sink_config(made))
    database.run("ALTER DATABASE closed ALLOW_CONNECTIONS false")
    for connect in (server.connect, server.connect_adbc):
        with pytest.raises(Away, match="is not currently accepting connections"):
            connect()
    database.run("ALTER DATABASE closed ALLOW_CONNECTIONS true")


NOT_TAKEN = {
    "sslkeylogfile": "/data/run/key",
    "service": "prod",
    "passfile": "/home/ann/.pgpass",
    "sslcrldir": "/etc",
    "hostaddr": "10.0.0.1",
    "gsslib": "gssapi",
    "gssdelegation": "1",
    "replication": "database",
    "client_encoding": "SQL_ASCII",
    "scram_client_key": "x",
    "oauth_issuer": "https://example.org",
    "oauth_client_id": "me",
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_a_parameter_of_libpq_that_is_not_on_the_list_is_refused(name: str) -> None:
    value = quote(NOT_TAKEN[name], safe="")
    told = f"the parameter {name} is none of those that a connector may give: leave it out"
    for url in (
        f"postgresql://u@h/db?{name}={value}",
        f"host=h dbname=db {name}={NOT_TAKEN[name]}",
    ):
        config = {**BULK, "source.connection.url": url}
        assert SparkPipeline.validate(config).errors["source.connection.url"] == (told,)
        with pytest.raises(ConfigInvalid) as caught:  # as a worker finds it in an old log
            Server.of("source", config)
        assert str(caught.value) == f"source.connection.url: {told}"


def test_each_parameter_of_libpq_is_on_the_list_or_known_to_be_left_out() -> None:
    known = {each.keyword.decode() for each in Conninfo.get_defaults()}
    left_out = {*NOT_TAKEN, "scram_server_key", "oauth_client_secret", "oauth_scope"}
    assert known - ALLOWED.keys() - left_out == set()
    assert all(ALLOWED.values())


@pytest.mark.parametrize("seconds", ["0", "-1", "61", "x", "0x3"])
def test_a_connection_is_not_waited_for_without_an_end(seconds: str) -> None:
    config = {**BULK, "source.connection.url": f"postgresql://h/db?connect_timeout={seconds}"}
    with pytest.raises(ConfigInvalid, match="connect_timeout is from 1 to 60, in seconds"):
        Server.of("source", config)


@pytest.mark.parametrize("name", ["sslrootcert", "sslcert", "sslkey", "sslcrl"])
def test_a_file_of_a_url_is_a_plain_one_within_what_a_connector_may_reach(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "allowed").mkdir()
    good = tmp_path / "allowed" / "a.pem"
    good.write_text("x")
    reach = AccessLimits(paths=(str(good.parent),))

    def server(url: str) -> Server:
        return Server.of("source", {**BULK, "source.connection.url": url}, reach=reach)

    for scheme in ("", "jdbc:") if name != "sslcrl" else ("",):
        url = f"{scheme}postgresql://h/db?{name}="
        assert f"{name}={good}" in server(f"{url}{good}").conninfo
        with pytest.raises(ConfigInvalid, match="is in none of the folders of"):
            server(f"{url}/etc/hostname")
        look = POSTGRES.probe(
            {**BULK, "source.connection.url": f"{url}/etc/hostname"}, ExternalAccess(reach)
        )
        assert "is in none of the folders of paths.allow" in look.errors["source.connection.url"]
    for path, why in no_plain_files(good.parent).items():
        with pytest.raises(ConfigInvalid) as caught:
            Server.of(
                "source", {**BULK, "source.connection.url": f"postgresql://h/db?{name}={path}"}
            )
        told = f"source.connection.url: {name}: {path} cannot be read: {why}"
        assert str(caught.value) == told


def test_the_authorities_that_the_machine_trusts_are_no_file() -> None:
    config = {**BULK, "source.connection.url": "postgresql://h/db?sslrootcert=system"}
    assert (
        "sslrootcert=system"
        in Server.of("source", config, reach=AccessLimits(paths=("/x",))).conninfo
    )
