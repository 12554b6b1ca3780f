# pyright: basic
"""A server behind a pooler is reached as itself, or it is told why it cannot be."""

import datetime as dt
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.stores.postgres import session_settings
from fairlead.runtime.pipeline.stores.postgres.connecting import Server, brief
from fairlead.runtime.pipeline.stores.postgres.session_settings import Login, settings_of
from fairlead_tests.connectors.publish_once import SinkLog
from fairlead_tests.pgbouncer import pooled
from fairlead_tests.postgres_pipes import Reading, sink_config, sink_of
from fairlead_tests.postgres_server import Database, NoServer

Read = Callable[..., Reading]
IGNORES = {"ignore_startup_parameters": "options,extra_float_digits"}
OPTIONS = r"-c search_path=public,\ app --lock-timeout=7"
SHOWN = ("timezone", "search_path", "lock_timeout", "statement_timeout", "bytea_output")


@pytest.fixture(autouse=True)
def unchecked() -> None:
    """Have no server be known from before."""
    session_settings._checked.clear()


@pytest.fixture
def through(request: pytest.FixtureRequest, database: Database) -> Any:
    """Return what opens a pooler with some settings until the test ends; it returns the URL."""

    def through(**settings: str) -> str:
        opened = pooled(database, **settings)
        try:
            url = opened.__enter__()
        except NoServer as reason:
            pytest.skip(str(reason))
        request.addfinalizer(lambda: opened.__exit__(None, None, None))
        return url

    return through


@pytest.mark.parametrize("ignored", [{}, IGNORES], ids=["as installed", "options ignored"])
def test_a_session_has_its_settings_through_a_pooler(
    database: Database, through: Any, ignored: dict[str, str]
) -> None:
    database.run("ALTER DATABASE test SET timezone = 'America/New_York'")
    url = through(pool_mode="session", **ignored)
    try:
        url += f"?options={quote(OPTIONS)}"
        server = Server.of("sink", sink_config(database, connection_url=url))
        wanted = ("UTC", "public, app", "30s", "10min", "hex")
        shown = f"SELECT {', '.join(f'current_setting({each!r})' for each in SHOWN)}"
        with server.connect() as connection:
            assert connection.execute(shown).fetchone() == wanted
        with closing(server.connect_adbc()) as made, made.cursor() as cursor:
            assert cursor.execute(shown).fetchone() == wanted
    finally:
        database.run("ALTER DATABASE test RESET timezone")


def test_rows_are_read_and_written_through_a_pooler(
    database: Database, through: Any, read: Read
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, at timestamp)")
    database.run("CREATE TABLE copy (id int, at timestamptz)")
    database.run("INSERT INTO t VALUES (1, '2026-03-08 02:30')")
    url, log = through(pool_mode="session"), SinkLog()
    query = "SELECT id, at::timestamptz AS at FROM t"
    (table,) = read(mode="bulk", query=query, connection_url=url, db_timezone="Asia/Tokyo").take()
    sink = sink_of(database, connection_url=url, table_name_format="copy")
    log.acquire(sink)
    log.write(sink, table.drop_columns(["_topic"]))
    sink.close()
    at = dt.datetime(2026, 3, 7, 17, 30, tzinfo=dt.UTC)
    assert database.run("SELECT * FROM copy") == [(1, at)]
    assert pa.types.is_timestamp(table.schema.field("at").type)


@pytest.mark.parametrize("pooling", ["transaction", "statement"])
def test_sessions_that_transactions_share_are_told_with_the_remedy(
    database: Database, through: Any, pooling: str
) -> None:
    url = through(pool_mode=pooling, **IGNORES)
    config = sink_config(database, connection_url=url)
    told = "a pooler is there that gives each transaction another session"
    server = Server.of("sink", config)
    for connect in (server.connect_adbc, server.connect):
        with pytest.raises(ConfigInvalid, match=told) as refused:
            connect()
        assert "set pool_mode=session for this database or user in pgbouncer" in str(refused.value)
    found = SparkPipeline.probe(config, ExternalAccess()).errors
    assert told in found["sink.connection.url"]


def test_a_look_at_the_sessions_of_one_user_tells_nothing_of_those_of_another(
    database: Database,
) -> None:
    server = Server.of("sink", sink_config(database))
    server.connect().close()
    known = Login(server.shown, "postgres")
    assert session_settings.is_checked(known)
    assert not session_settings.is_checked(known._replace(user="app"))


def test_what_a_pooler_does_not_know_is_an_error_of_the_config(
    database: Database, through: Any
) -> None:
    url = through(pool_mode="session")
    for more, told in (
        ("?options=-B%2016", "unsupported startup parameter: options: a pooler is there"),
        ("?user=nobody", "no such user|password authentication failed|SASL authentication failed"),
    ):
        with pytest.raises(ConfigInvalid, match=told):
            Server.of("sink", sink_config(database, connection_url=url + more)).connect()


@pytest.mark.parametrize(
    "options", ["-c work_mem=much", "-c nonsense=1", "-c jit_debugging_support=1"]
)
def test_a_setting_that_a_session_cannot_have_is_an_error_of_the_config(
    database: Database, options: str
) -> None:
    url = f"{database.url}?options={quote(options)}"
    with pytest.raises(ConfigInvalid, match=options.partition("=")[0][3:]):
        Server.of("sink", sink_config(database, connection_url=url)).connect()


@pytest.mark.parametrize(
    ("options", "found", "left"),
    [
        ("", {}, ""),
        (r"-c search_path=a,\ b -cjit=off --work-mem=1MB", None, ""),
        ("-c geqo=off -B 16", {}, "-c geqo=off -B 16"),
        ("-c lock_timeout=1 -c TimeZone=Asia/Tokyo", {}, ""),
    ],
)
def test_options_of_a_url_are_settings_or_are_left_whole(
    options: str, found: dict[str, str] | None, left: str
) -> None:
    found = {"search_path": "a, b", "jit": "off", "work_mem": "1MB"} if found is None else found
    settings, rest = settings_of(options, "UTC", 1_000)
    ours = {**session_settings._OURS, "timezone": "UTC", "statement_timeout": "1000"}
    assert (settings, rest) == (found | ours, left)


def test_a_prepared_statement_of_another_session_is_told_with_the_remedy() -> None:
    told = brief('ERROR:  prepared statement "_pg3_0" already exists')
    assert told.startswith('prepared statement "_pg3_0" already exists: a pooler is there')
