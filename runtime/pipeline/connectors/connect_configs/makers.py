"""Where the plugins of Kafka Connect are had that most configs name."""

from collections.abc import Mapping
from typing import Final

from .draft import short_name

FETCH: Final = "fairlead plugins fetch"
_DEBEZIUM: Final = "io.debezium:debezium-connector-{}:3.6.1.Final"
_KAFKA: Final = "org.apache.kafka:connect-{}:4.3.0"
COORDINATES: Final[Mapping[str, str]] = {
    "io.debezium.connector.postgresql.PostgresConnector": _DEBEZIUM.format("postgres"),
    "io.debezium.connector.mysql.MySqlConnector": _DEBEZIUM.format("mysql"),
    "io.debezium.connector.mariadb.MariaDbConnector": _DEBEZIUM.format("mariadb"),
    "io.debezium.connector.sqlserver.SqlServerConnector": _DEBEZIUM.format("sqlserver"),
    "io.debezium.connector.oracle.OracleConnector": _DEBEZIUM.format("oracle"),
    "io.debezium.connector.jdbc.JdbcSinkConnector": _DEBEZIUM.format("jdbc"),
    "org.apache.kafka.connect.mirror.MirrorSourceConnector": _KAFKA.format("mirror"),
    "org.apache.kafka.connect.mirror.MirrorCheckpointConnector": _KAFKA.format("mirror"),
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector": _KAFKA.format("mirror"),
    "org.apache.kafka.connect.file.FileStreamSourceConnector": _KAFKA.format("file"),
    "org.apache.kafka.connect.file.FileStreamSinkConnector": _KAFKA.format("file"),
    "org.apache.iceberg.connect.IcebergSinkConnector": (
        "--name iceberg org.apache.iceberg:iceberg-kafka-connect:1.12.0"
        " org.apache.iceberg:iceberg-parquet:1.12.0"
    ),
}
"""What `plugins fetch` takes, by the class."""
_BY_SHORT_NAME: Final[Mapping[str, str]] = {
    short_name(name).removesuffix("Connector"): given
    for name, given in COORDINATES.items()
    if "Jdbc" not in name  # several makers have a class of that name
}
_OWN: Final = ("fairlead.", "org.apache.kafka.connect.")
"""Packages whose plugins are in no archive of a maker."""


def origin_of(connector: str) -> str:
    """Return the sentence that says how to get a plugin; "" if the name tells nothing.

    A full class that is not known is taken for one whose maker has an archive.
    """
    name = connector.strip()
    given = COORDINATES.get(name) or _BY_SHORT_NAME.get(name.removesuffix("Connector"))
    if given:
        return f"the plugin of {short_name(f'.{name}')} comes by `{FETCH} {given}`"
    if name.count(".") > 1 and name.endswith("Connector") and not name.startswith(_OWN):
        return (
            f"the plugin of {short_name(name)} comes from its maker's archive, by"
            " `fairlead plugins add`"
        )
    return ""
