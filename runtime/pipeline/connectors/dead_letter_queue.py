# pyright: basic
"""The dead letter queue: a folder or a Kafka topic, for any source and sink.

It is itself a file sink or a Kafka sink, with its own staging and marks. The commit of a batch also
names its staged dead letters. Letters that were staged under an earlier config are published to the
queue of that config.
"""

from collections.abc import Mapping
from dataclasses import replace
from os.path import normpath
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from ....events.commits import CommitId, Manifest
from ....events.model import Resource, Token
from ..formats.evolution.policy import DEAD_LETTER as EVOLUTION_DEAD_LETTER
from ..formats.evolution.policy import EVOLUTION
from ..installed import pip_install
from ..spi.config import ConfigInvalid, Importance, ParsedConfig, Width, has_reference
from ..spi.context import Context, ExternalAccess
from ..spi.errors import SinkBroken
from ..spi.keys.common import QUEUE, QUEUE_TOPIC, TRANSFORMS
from ..spi.keys.kinds import flag_key, number_key, task_key, text_key
from ..spi.rows import RECORD_COLUMNS
from ..spi.sink import Sink, TaskOwnership
from ..stores.files import keys as files
from ..stores.files.sink.sink import FileSink
from ..stores.files.sink.sink_type import flaw_in_folder
from ..stores.files.sink.writing import WriteFormat
from ..stores.files.sink_folder.root import FolderKeys
from ..stores.kafka import keys as kafka
from ..stores.kafka.connection import SERVERS, connection_keys
from ..transforms.catalogue import aliases
from ..transforms.expect import DEAD_LETTER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUEUE_PATH: Final = f"{QUEUE}.path"
QUEUE_HEADERS: Final = f"{QUEUE}.context.headers.enable"
_REPLICAS: Final = f"{QUEUE}.topic.replication.factor"
_STAGING: Final = f"{QUEUE}.staging.path"
_SERVERS: Final = f"{QUEUE}.{SERVERS}"
_CLAIM: Final = "task.deadletterqueue.claim"
_FOLDER: Final = FolderKeys(QUEUE_PATH, _CLAIM)

QUEUE_KEYS: Final = (
    text_key(
        QUEUE_PATH,
        "The folder of dead letters: each bad row is a line of JSON there, with its "
        "connector, task, stage, position, reason, text and time. It is written like the folder "
        "of a file sink, exactly once.",
        validator=files.local_or_none,
        width=Width.LONG,
    ),
    text_key(
        QUEUE_TOPIC,
        "The topic of dead letters, instead of a folder. Each bad row is a record there, exactly "
        "once: its text is the value; a row from Kafka keeps its own key and value. "
        f"The cluster is that of `{_SERVERS}`; without it, that of a Kafka sink or source.",
    ),
    number_key(
        _REPLICAS,
        "The replication factor of the dead letter topic, if it does not exist and is created.",
        3,
        least=1,
    ),
    flag_key(
        QUEUE_HEADERS,
        "Whether dead letters also have Connect's error headers, such as "
        "`__connect.errors.stage`. In a folder they are the field `headers`.",
        default=False,
        importance=Importance.LOW,
    ),
    *(
        replace(each, required=False, importance=Importance.LOW, documentation=told)
        for each in connection_keys(QUEUE)
        for told in [f"For the topic of dead letters: {each.documentation}"]
    ),
    text_key(
        _STAGING,
        "The folder where dead letters are staged until they are sent to the topic. Default: "
        f"`{kafka.STAGING}`, or else the node's own folder.",
        importance=Importance.LOW,
        width=Width.LONG,
    ),
)
QUEUE_TASK_KEYS: Final = (task_key(_CLAIM, "the task's claim on the folder of dead letters"),)
"""The key that the connector adds to task configs."""


class DeadLetterQueue(Sink["DataFrame"]):
    """Stages letters in the configured queue; also publishes letters for a former queue."""

    def __init__(self, folder: FileSink, topic: "Sink[DataFrame] | None") -> None:
        """Store both sinks; `folder` is needed to publish even if the config has none."""
        self._folder = folder
        self._topic = topic

    def acquire(self, ownership: TaskOwnership) -> None:
        """Acquire the queue for a task."""
        self._current.acquire(ownership)

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Stage the letters of a batch; a folder does not keep records as they came."""
        rows = rows if self._topic is not None else rows.drop(*RECORD_COLUMNS)
        return self._current.stage(rows, commit_id, input_bytes)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Publish letters to the queue that they were staged for.

        Raises `SinkBroken` for letters of a topic if the config no longer has one.
        """
        # Only manifests of a topic have a note.
        if manifest.note and self._topic is None:
            raise SinkBroken(
                f"dead letters of {commit_id} are staged for a topic, but the config no longer "
                f"has one. Nothing was lost: set {QUEUE_TOPIC} again to send them"
            )
        (self._topic if manifest.note and self._topic else self._folder).publish(
            manifest, commit_id, sequence
        )

    def discard(self, commit_id: CommitId) -> None:
        """Remove the staged letters of a batch."""
        self._current.discard(commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove all that a task staged under this token and older ones."""
        self._current.sweep(resource, token)

    def close(self) -> None:
        """Close both sinks."""
        self._folder.close()
        if self._topic is not None:
            self._topic.close()

    @property
    def _current(self) -> "Sink[DataFrame]":
        return self._folder if self._topic is None else self._topic


def flaws_in_queue(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return errors: a queue that the connector itself reads or writes, or a missing queue."""
    path, topic = config.get(QUEUE_PATH, ""), config.get(QUEUE_TOPIC, "")
    if topic:
        flaw = _flaw_in_topic(config, topic) if not path else f"give either it or {QUEUE_PATH}"
        return {QUEUE_TOPIC: flaw} if flaw else {}
    if not path:
        needs_queue = [
            key
            for alias in aliases(config)
            if config.get(key := f"{TRANSFORMS}.{alias}.on.violation") == DEAD_LETTER
        ]
        if config.get(EVOLUTION) == EVOLUTION_DEAD_LETTER:
            needs_queue.append(EVOLUTION)
        error = f"dead letters need a folder or a topic: set {QUEUE_PATH} or {QUEUE_TOPIC}"
        return dict.fromkeys(needs_queue, error)
    for key in (files.SOURCE_PATH, files.SINK_PATH):
        other = config.get(key, "")
        if other and PurePath(normpath(path)).is_relative_to(normpath(other)):
            return {QUEUE_PATH: f"lies in {key}: dead letters need a folder of their own"}
    return {}


def probe_queue(config: Mapping[str, str], outside: ExternalAccess) -> Mapping[str, str]:
    """Return an error, by the key, if the folder cannot be created or written to."""
    path = config.get(QUEUE_PATH, "")
    flaw = "" if not path or has_reference(path) else flaw_in_folder(path, config, outside)
    return {QUEUE_PATH: flaw} if flaw else {}


def claim_queue(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> Mapping[str, str]:
    """Claim the folder of dead letters; return the key for task configs.

    Raises `NotReady`, `ConfigInvalid`.
    """
    if not settings.text(QUEUE_PATH):
        return {}
    context.check_path(QUEUE_PATH, config[QUEUE_PATH])
    return _FOLDER.shared_task_config(context, settings)


def queue_sink(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> DeadLetterQueue:
    """Make the sink of dead letters; without a queue in the config it can only publish."""
    if path := config.get(QUEUE_PATH, ""):
        context.check_path(QUEUE_PATH, path)
    folder = FileSink(_FOLDER.place(context, settings), WriteFormat("json"), context.warn)
    topic = _topic(context, config, settings) if config.get(QUEUE_TOPIC) else None
    return DeadLetterQueue(folder, topic)


def name_of_queue(config: Mapping[str, str]) -> str:
    """Return the name of the queue for messages; empty: there is none."""
    topic = config.get(QUEUE_TOPIC, "")
    return f"topic {topic}" if topic else config.get(QUEUE_PATH, "")


def _topic(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> "Sink[DataFrame]":
    try:
        from ..stores.kafka.sink.dead_letters import (  # noqa: PLC0415  # an extra
            LetterTopic,
            dead_letter_topic,
        )
    except ImportError:
        raise ConfigInvalid(f"{QUEUE_TOPIC} needs `{pip_install('kafka')}`") from None
    staging = config.get(_STAGING) or config.get(kafka.STAGING, "")
    topic, replicas = settings.text(QUEUE_TOPIC), settings.number(_REPLICAS)
    return dead_letter_topic(
        context, config, LetterTopic(end_of_topic(config), topic, replicas, staging)
    )


def end_of_topic(config: Mapping[str, str]) -> str:
    """Return the prefix of the keys that configure the topic's cluster; empty: there are none."""
    ends = (QUEUE, *(end for end in ("sink", "source") if config.get(f"{end}.type") == "kafka"))
    return next((end for end in ends if config.get(f"{end}.{SERVERS}")), "")


def _flaw_in_topic(config: Mapping[str, str], topic: str) -> str:
    end = end_of_topic(config)
    if not end:
        return f"neither the sink nor the source is of type kafka: set {_SERVERS} as well"
    named = [config.get(kafka.SINK_TOPIC, ""), *config.get(kafka.TOPICS, "").split(",")]
    if topic in map(str.strip, named) and end != QUEUE:
        return "is read or written by the connector itself: dead letters need a topic of their own"
    return ""
