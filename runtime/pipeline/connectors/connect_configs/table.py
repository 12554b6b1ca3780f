"""The table of Connect's classes and their counterparts here."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from .draft import BOOTSTRAP, Draft, TranslatedConfig, short_name
from .files import file_stream_sink, file_stream_source, object_store
from .jdbc import jdbc_sink, jdbc_source
from .logs import debezium_postgres, mirror_source

PIPELINE: Final = "SparkPipeline"
MOUNT: Final = "/mnt"


class Counterpart(NamedTuple):
    """The counterpart of a class of Connect."""

    keys: str
    """The keys that select it, as users read them."""
    translate: Callable[[Draft], None] | None = None
    """None: no config can be written for it."""


_STORE: Final = Counterpart(
    "source.type=kafka with sink.type=files, on a mount of the store", object_store
)
_JDBC_SOURCE: Final = Counterpart(
    "source.type=postgres or source.type=jdbc, with sink.type=kafka", jdbc_source
)
_LOG_OF_OTHERS: Final = Counterpart(
    "no log but PostgreSQL's is read here: source.type=jdbc reads its tables"
)
_MIRRORS: Final = Counterpart("only records are mirrored here: MirrorSourceConnector is known")
COUNTERPARTS: Final[Mapping[str, Counterpart]] = {
    "FileStreamSource": Counterpart("source.type=files with sink.type=kafka", file_stream_source),
    "FileStreamSink": Counterpart("source.type=kafka with sink.type=files", file_stream_sink),
    "JdbcSource": _JDBC_SOURCE,
    "JdbcSink": Counterpart(
        "source.type=kafka with sink.type=postgres or sink.type=jdbc", jdbc_sink
    ),
    "Postgres": Counterpart(
        "source.type=postgres with source.mode=log, and sink.type=kafka", debezium_postgres
    ),
    "MirrorSource": Counterpart("source.type=kafka with sink.type=kafka", mirror_source),
    "S3Sink": _STORE,
    "AivenKafkaConnectS3Sink": _STORE,
    "GcsSink": _STORE,
    "AzureBlobStorageSink": _STORE,
    "AzureBlobSink": _STORE,
    "HdfsSink": _STORE,
    "Hdfs2Sink": _STORE,
    "Hdfs3Sink": _STORE,
    "MySql": _LOG_OF_OTHERS,
    "MariaDb": _LOG_OF_OTHERS,
    "SqlServer": _LOG_OF_OTHERS,
    "Oracle": _LOG_OF_OTHERS,
    "Db2": _LOG_OF_OTHERS,
    "Informix": _LOG_OF_OTHERS,
    "MirrorCheckpoint": _MIRRORS,
    "MirrorHeartbeat": _MIRRORS,
}
"""By the last part of the class, without `Connector`."""


def counterpart_of(connector: str) -> Counterpart | None:
    """Return the counterpart of a class of Connect, by its full or its short name."""
    return COUNTERPARTS.get(short_name(connector).removesuffix("Connector"))


def hint_for(connector: str) -> str:
    """Return a sentence for somebody who has a config of this class; "" if it is not known."""
    counterpart = counterpart_of(connector)
    if counterpart is None:
        return ""
    if counterpart.translate is None:
        return f"of {short_name(connector)}: {counterpart.keys}"
    return (
        f"what {short_name(connector)} does is done here by {counterpart.keys}:"
        " `fairlead translate FILE` writes such a config"
    )


def translate(
    name: str, config: Mapping[str, str], *, bootstrap: str = BOOTSTRAP, mount: str = MOUNT
) -> TranslatedConfig | None:
    """Return the config of a pipeline for that of a Connect connector; None for other classes."""
    counterpart = counterpart_of(config.get("connector.class", ""))
    if counterpart is None or counterpart.translate is None:
        return None
    left = {key: value for key, value in config.items() if key not in {"connector.class", "name"}}
    draft = Draft(left, bootstrap, mount, {"connector.class": PIPELINE})
    draft.common()
    counterpart.translate(draft)
    return draft.finish(name)
