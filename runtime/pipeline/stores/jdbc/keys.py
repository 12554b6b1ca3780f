"""The config keys of the JDBC source and sink."""

from collections.abc import Mapping, Sequence
from typing import Final

from .....actors.settings import SettingType, Value, not_blank
from ...spi.config import Definition, Importance, Width, has_reference
from ...spi.keys.kinds import choice_key, flag_key, list_key, number_key, secret_key, text_key

MODE: Final = "source.mode"
TABLES: Final = "source.table.whitelist"
QUERY: Final = "source.query"
INCREMENTING: Final = "source.incrementing.column.name"
TOPIC_PREFIX: Final = "source.topic.prefix"
POLL_MS: Final = "source.table.poll.interval.ms"
SHARE: Final = "source.tables"
TABLE: Final = "sink.table.name.format"
INSERT_MODE: Final = "sink.insert.mode"
AUTO_CREATE: Final = "sink.auto.create"

BULK, BY_NUMBER = "bulk", "incrementing"


DRIVERS: Final = (
    "com.amazon.redshift.jdbc.Driver",
    "com.amazon.redshift.jdbc42.Driver",
    "com.clickhouse.jdbc.ClickHouseDriver",
    "com.clickhouse.jdbc.Driver",
    "com.databricks.client.jdbc.Driver",
    "com.ibm.as400.access.AS400JDBCDriver",
    "com.ibm.db2.jcc.DB2Driver",
    "com.informix.jdbc.IfxDriver",
    "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "com.mysql.cj.jdbc.Driver",
    "com.mysql.jdbc.Driver",
    "com.sap.db.jdbc.Driver",
    "com.singlestore.jdbc.Driver",
    "com.sybase.jdbc4.jdbc.SybDriver",
    "com.teradata.jdbc.TeraDriver",
    "com.vertica.jdbc.Driver",
    "io.trino.jdbc.TrinoDriver",
    "net.snowflake.client.jdbc.SnowflakeDriver",
    "net.sourceforge.jtds.jdbc.Driver",
    "oracle.jdbc.OracleDriver",
    "oracle.jdbc.driver.OracleDriver",
    "org.apache.derby.client.ClientAutoloadedDriver",
    "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "org.apache.derby.jdbc.ClientDriver",
    "org.apache.derby.jdbc.EmbeddedDriver",
    "org.duckdb.DuckDBDriver",
    "org.firebirdsql.jdbc.FBDriver",
    "org.h2.Driver",
    "org.hsqldb.jdbc.JDBCDriver",
    "org.mariadb.jdbc.Driver",
    "org.postgresql.Driver",
    "org.sqlite.JDBC",
)
"""The classes of drivers that a config may name: Spark makes an object of any class."""


def _driver(value: Value) -> str | None:
    if not value or value in DRIVERS:
        return None
    return f"must be empty, for the driver that knows the URL, or one of {', '.join(DRIVERS)}"


def _connection(end: str) -> Sequence[Definition]:
    return (
        text_key(
            f"{end}.connection.url",
            "The database, as its driver has it: jdbc:mysql://host:3306/shop. The node's "
            "jdbc.allow must have its beginning.",
            importance=Importance.HIGH,
            required=True,
            validator=not_blank,
            width=Width.LONG,
        ),
        text_key(f"{end}.connection.user", "Who asks.", "", importance=Importance.HIGH),
        secret_key(
            f"{end}.connection.password",
            "The password; it is sealed before it is written down.",
            importance=Importance.HIGH,
        ),
        text_key(
            f"{end}.connection.driver",
            "The class of the driver, whose jar the node has in "
            "spark.conf.spark.driver.extraClassPath. Empty: the one that knows the URL.",
            "",
            validator=_driver,
            importance=Importance.LOW,
        ),
        number_key(
            f"{end}.query.timeout.ms",
            "How long the server may work at one statement, where the driver keeps to it.",
            600_000,
            least=1_000,
            importance=Importance.LOW,
        ),
    )


SOURCE: Sequence[Definition] = (
    *_connection("source"),
    choice_key(
        MODE,
        "bulk reads all rows once; incrementing goes on behind the highest number of a column.",
        BULK,
        BY_NUMBER,
        importance=Importance.HIGH,
        required=True,
        dependents=(INCREMENTING,),
    ),
    list_key(TABLES, "The tables to read, as SQL has them; quoted if the database wants that."),
    text_key(QUERY, "A SELECT to read, in place of tables.", "", width=Width.LONG),
    text_key(
        INCREMENTING,
        "A column of whole numbers that grow with each row, and of which each is there once. A row "
        "that commits behind a higher one is not seen, and one without a number is not read.",
        "",
    ),
    text_key(TOPIC_PREFIX, "What the column `_topic` has before the table's name.", ""),
    number_key(
        POLL_MS,
        "How long after a look that found nothing a table is looked at again.",
        5_000,
        least=100,
        kind=SettingType.INT,
        importance=Importance.LOW,
    ),
)

SOURCE_TASK: Sequence[Definition] = (
    text_key(SHARE, "Set by the connector: the task's tables, as JSON.", "[]"),
)

SINK: Sequence[Definition] = (
    *_connection("sink"),
    text_key(
        TABLE,
        "The table to write to, as SQL has it.",
        importance=Importance.HIGH,
        required=True,
        validator=not_blank,
    ),
    choice_key(INSERT_MODE, "insert adds rows; there is no other way here.", "insert"),
    flag_key(
        AUTO_CREATE,
        "Whether a table that is not there is made, with the columns of the rows.",
        default=False,
    ),
)


def complaints(end: str, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return errors of an end's keys that do not fit together, by the key to change."""
    errors: dict[str, str] = {}
    url = config.get(f"{end}.connection.url", "")
    if url and not has_reference(url):
        if not url.startswith("jdbc:"):
            errors[f"{end}.connection.url"] = "is no URL of JDBC: jdbc:mysql://host:3306/shop"
        elif "password" in url.lower():
            sealed = f"{end}.connection.password"
            errors[f"{end}.connection.url"] = f"holds a password: give it as {sealed}"
    if end == "sink":
        if "${" in config.get(TABLE, ""):
            errors[TABLE] = "one table takes all rows here: give its name as it is"
        return errors
    if bool(config.get(TABLES)) == bool(config.get(QUERY)):
        errors[TABLES] = f"give either {TABLES} or {QUERY}"
    if (config.get(MODE) == BY_NUMBER) != bool(config.get(INCREMENTING)):
        errors[INCREMENTING] = f"goes with {MODE}={BY_NUMBER}, and that with it"
    return errors
