# pyright: basic
"""The queue of dead letters: a folder, or a topic of Kafka, whatever the source and the sink are.

Either is written to as a sink of its kind is, with staging and marks of its own, and the batch's
one commit names what was staged. What an earlier config had staged is published where it belongs.
"""

from collections.abc import Mapping
from dataclasses import replace
from os.path import normpath
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from .....events.commits import CommitId, Manifest
from .....events.model import Resource, Token
from ...spi.config import ConfigInvalid, Importance, ParsedConfig, Width, is_deferred
from ...spi.context import Context, Outside
from ...spi.errors import SinkBroken
from ...spi.key_kinds import flag_key, number_key, task_key, text_key
from ...spi.sink import Sink, Tenure
from ...transforms.catalogue import aliases
from ...transforms.expect import DEAD_LETTER
from ..common_keys import QUEUE, QUEUE_TOPIC, TRANSFORMS
from ..evolution.policy import DEAD_LETTER as LETTERS
from ..evolution.policy import EVOLUTION
from ..files import keys as files
from ..files.sink.root import FolderKeys
from ..files.sink.sink import FileSink
from ..files.sink.sink_type import flaw_in_folder
from ..files.sink.writing import WriteFormat
from ..kafka import keys as kafka
from ..kafka.connection import SERVERS, connection_keys

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
        "The folder of dead letters: each row that is left out is a line of JSON there, with its "
        "connector, task, stage, position, reason, text and time. It is written to as the folder "
        "of a sink is, exactly once.",
        validator=files.local_or_none,
        width=Width.LONG,
    ),
    text_key(
        QUEUE_TOPIC,
        "The topic of dead letters, instead of a folder: each row that is left out is a record "
        "there with its text as the value, one of Kafka with its own key and value, exactly once. "
        "Its cluster is that of "
        f"`{_SERVERS}`; else the sink's, or the source's, if that is of Kafka.",
    ),
    number_key(
        _REPLICAS,
        "How many copies the topic of dead letters has if it is not there and has to be made.",
        3,
        least=1,
    ),
    flag_key(
        QUEUE_HEADERS,
        "Whether each dead letter also has the headers that Connect gives it, by their names "
        "there: `__connect.errors.stage`. In a folder they are the field `headers`.",
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
        f"The folder where letters lie until they are in the topic, as `{kafka.STAGING}` is for "
        "rows; that one, or the node's own, unless set.",
        importance=Importance.LOW,
        width=Width.LONG,
    ),
)
QUEUE_TASK_KEYS: Final = (task_key(_CLAIM, "by what right the task writes dead letters"),)
"""What a task is told of the queue."""


class DeadLetterQueue(Sink["DataFrame"]):
    """Stages letters in the queue of the config, and publishes those of an earlier one as well."""

    def __init__(self, folder: FileSink, topic: "Sink[DataFrame] | None") -> None:
        """Take both kinds: the folder, which may be none by the config, and the topic, if any."""
        self._folder = folder
        self._topic = topic

    def acquire(self, tenure: Tenure) -> None:
        """Take the queue for a task."""
        self._now.acquire(tenure)

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write the letters of a batch where no reader looks; a folder has texts alone."""
        rows = rows if self._topic is not None else rows.drop("key", "value")
        return self._now.stage(rows, commit_id, input_bytes)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put letters where they were staged for; raises `SinkBroken` if nobody knows the cluster.

        Only a batch for a topic has a note.
        """
        if manifest.note and self._topic is None:
            raise SinkBroken(
                f"dead letters of {commit_id} wait to be sent to a topic, and the config names "
                f"none by now. Nothing was lost: set {QUEUE_TOPIC} again, and they are sent"
            )
        (self._topic if manifest.note and self._topic else self._folder).publish(
            manifest, commit_id, sequence
        )

    def discard(self, commit_id: CommitId) -> None:
        """Remove what was staged for a batch."""
        self._now.discard(commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove what a task has staged under a token and older ones."""
        self._now.sweep(resource, token)

    def close(self) -> None:
        """Let go of the connections."""
        self._folder.close()
        if self._topic is not None:
            self._topic.close()

    @property
    def _now(self) -> "Sink[DataFrame]":
        return self._folder if self._topic is None else self._topic


def flaws_in_queue(config: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse a queue that is read by others or cannot be reached, and dead letters without one."""
    path, topic = config.get(QUEUE_PATH, ""), config.get(QUEUE_TOPIC, "")
    if topic:
        flaw = _flaw_in_topic(config, topic) if not path else f"give either it or {QUEUE_PATH}"
        return {QUEUE_TOPIC: flaw} if flaw else {}
    if not path:
        wants = [
            key
            for alias in aliases(config)
            if config.get(key := f"{TRANSFORMS}.{alias}.on.violation") == DEAD_LETTER
        ]
        if config.get(EVOLUTION) == LETTERS:
            wants.append(EVOLUTION)
        told = f"dead letters need a folder or a topic: give {QUEUE_PATH} or {QUEUE_TOPIC}"
        return dict.fromkeys(wants, told)
    for key in (files.SOURCE_PATH, files.SINK_PATH):
        other = config.get(key, "")
        if other and PurePath(normpath(path)).is_relative_to(normpath(other)):
            return {QUEUE_PATH: f"lies in {key}: dead letters need a folder of their own"}
    return {}


def look_at_queue(config: Mapping[str, str], outside: Outside) -> Mapping[str, str]:
    """Return what keeps the folder from being made or written to, by its key."""
    path = config.get(QUEUE_PATH, "")
    flaw = "" if not path or is_deferred(path) else flaw_in_folder(path, config, outside)
    return {QUEUE_PATH: flaw} if flaw else {}


def claim_queue(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> Mapping[str, str]:
    """Return by what right tasks write dead letters; raises `NotReady`, `ConfigInvalid`."""
    if not settings.text(QUEUE_PATH):
        return {}
    context.check_path(QUEUE_PATH, config[QUEUE_PATH])
    return _FOLDER.shared_task_config(context, settings)


def queue_sink(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> DeadLetterQueue:
    """Make what writes dead letters; without a queue it can finish what others began."""
    if path := config.get(QUEUE_PATH, ""):
        context.check_path(QUEUE_PATH, path)
    folder = FileSink(_FOLDER.place(context, settings), WriteFormat("json"), context.warn)
    topic = _topic(context, config, settings) if config.get(QUEUE_TOPIC) else None
    return DeadLetterQueue(folder, topic)


def name_of_queue(config: Mapping[str, str]) -> str:
    """Return what people call the queue; empty: there is none."""
    topic = config.get(QUEUE_TOPIC, "")
    return f"topic {topic}" if topic else config.get(QUEUE_PATH, "")


def _topic(
    context: Context, config: Mapping[str, str], settings: ParsedConfig
) -> "Sink[DataFrame]":
    try:
        from ..kafka.sink.dead_letters import (  # noqa: PLC0415  # an extra
            LetterTopic,
            dead_letter_topic,
        )
    except ImportError:
        raise ConfigInvalid(f"{QUEUE_TOPIC} needs `pip install 'fairlead[kafka]'`") from None
    staging = config.get(_STAGING) or config.get(kafka.STAGING, "")
    topic, replicas = settings.text(QUEUE_TOPIC), settings.number(_REPLICAS)
    return dead_letter_topic(
        context, config, LetterTopic(_end_of(config), topic, replicas, staging)
    )


def _end_of(config: Mapping[str, str]) -> str:
    """Return before which keys it stands how the topic's cluster is reached; empty: nowhere."""
    ends = (QUEUE, *(end for end in ("sink", "source") if config.get(f"{end}.type") == "kafka"))
    return next((end for end in ends if config.get(f"{end}.{SERVERS}")), "")


def _flaw_in_topic(config: Mapping[str, str], topic: str) -> str:
    end = _end_of(config)
    if not end:
        return f"neither the sink nor the source is of Kafka: give {_SERVERS} as well"
    named = [config.get(kafka.SINK_TOPIC, ""), *config.get(kafka.TOPICS, "").split(",")]
    if topic in map(str.strip, named) and end != QUEUE:
        return "is read or written by the connector itself: dead letters need a topic of their own"
    return ""
