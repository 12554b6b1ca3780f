"""Makes the config of a connector that retries the dead letters of another one.

It reads their folder (`source.type=dead-letters`) or their topic (`dead-letter-topic`) by offsets
of its own, so each letter counts once. It has the transforms and the sink of the other one as they
are now. What is refused again goes to a folder or a topic beside the first one. Nothing is asked
outside, and sealed values stay sealed.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..formats.spark.options import SOURCE_OPTION
from ..spi.config import has_reference
from ..spi.errors import LettersRefused, PluginUnknown
from ..spi.keys.common import NAME, QUEUE, QUEUE_TOPIC, TOLERANCE, TRANSFORMS
from ..spi.keys.labels import LABELS, is_label, read_labels
from ..spi.keys.letters import CONNECTOR, LETTER_TOPIC, LETTERS
from ..stores.files.keys import SINK_ADOPT, SOURCE_PATH
from ..stores.kafka.connection import connection_keys
from ..stores.kafka.keys import TOPICS
from .dead_letter_queue import QUEUE_HEADERS, QUEUE_PATH, end_of_topic
from .error_keys import MAX_RATIO
from .pipeline_keys import SOURCE_TYPE, SOURCE_TYPES, PipelineTypes

_OF_FILE: Final = re.compile(r"\binput_file_|(?<![\w`])_metadata\b", re.IGNORECASE)
"""Matches in SQL that asks for the file of a row."""
_OF_FIRST: Final = (SINK_ADOPT, MAX_RATIO)
"""Keys that are for one connector once, and about how many of all its rows are bad."""
_LABEL: Final = "retry-of"
_UNRESOLVED: Final = "has a ${...} reference, which only workers resolve"


def retry_config(
    config: Mapping[str, str], task_config: Mapping[str, str], name: str
) -> Mapping[str, str]:
    """Return the config of the connector `name`; see `Connector.retry_config`."""
    queue = _in_topic(config) if config.get(QUEUE_TOPIC) else _in_folder(config)
    for key, value in config.items():
        if key.startswith(f"{TRANSFORMS}.") and _OF_FILE.search(value):
            raise LettersRefused(
                f"{key} asks for the file of a row, and that of a retried row is one of letters"
            )
    source = PipelineTypes.of(config).source.letter_keys(config, task_config)
    source = {key: value for key, value in source.items() if queue.takes(key)}
    kept = {key: value for key, value in config.items() if key not in _OF_FIRST}
    kept = {key: value for key, value in kept.items() if not key.startswith("source.")}
    own = {NAME: name, CONNECTOR: config[NAME], TOLERANCE: "all", **queue.keys}
    if is_label(config[NAME]):
        labels = {**read_labels(config), _LABEL: config[NAME]}
        own[LABELS] = ", ".join(f"{label}={value}" for label, value in labels.items())
    return {**kept, **source, **own}


class _Queue(NamedTuple):
    """Where the letters are."""

    keys: Mapping[str, str]
    """What the new connector has of it: the source, and the queue for what is refused again."""
    takes: Callable[[str], bool]
    """Tells whether the source has a key of the first source."""


def _in_folder(config: Mapping[str, str]) -> _Queue:
    """Return a folder of dead letters; raises `LettersRefused`."""
    path = config.get(QUEUE_PATH, "")
    if not path or has_reference(path):
        why = _UNRESOLVED if path else "is not set"
        raise LettersRefused(f"{QUEUE_PATH} {why}")
    again = f"{path.rstrip('/')}-retry"
    keys = {SOURCE_TYPE: LETTERS, SOURCE_PATH: path, QUEUE_PATH: again}
    return _Queue(keys, _any_key)


def _any_key(_: str) -> bool:
    """Return True: the source has each key of the first one."""
    return True


def _in_topic(config: Mapping[str, str]) -> _Queue:
    """Return a topic of dead letters; raises `LettersRefused`."""
    topic = config[QUEUE_TOPIC]
    if has_reference(topic):
        raise LettersRefused(f"{QUEUE_TOPIC} {_UNRESOLVED}")
    if config.get(QUEUE_HEADERS, "").strip().lower() != "true":
        raise LettersRefused(
            f"the records of topic {topic} do not say whose they are, and how they are read again: "
            f"set {QUEUE_HEADERS}=true to retry those that come from then on"
        )
    try:
        kind = SOURCE_TYPES.find(LETTER_TOPIC)
    except PluginUnknown as error:
        raise LettersRefused(str(error)) from None
    end, names = end_of_topic(config), [each.name for each in connection_keys("")]
    cluster = {
        f"{each}{name}": config[f"{end}{name}"]
        for name in names
        if config.get(f"{end}{name}")
        for each in ("source", QUEUE)  # the source of the first one may have been the cluster
    }
    own = {SOURCE_TYPE: LETTER_TOPIC, TOPICS: topic, QUEUE_TOPIC: f"{topic}-retry", **cluster}
    defined = kind.keys()
    of_rows = {each.name for each in defined} - {f"source{name}" for name in names}

    def is_of_rows(key: str) -> bool:
        return key in of_rows or key.startswith(SOURCE_OPTION)

    return _Queue(own, is_of_rows)
