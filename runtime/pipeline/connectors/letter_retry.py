"""Makes the config of a connector that retries the dead letters of another one.

It reads their folder (`source.type=dead-letters`) by offsets of its own, so each letter counts
once. It has the transforms and the sink of the other one as they are now. What is refused again
goes to a folder beside the first one. Nothing is asked outside, and sealed values stay sealed.
"""

import re
from collections.abc import Mapping
from typing import Final

from ..spi.config import has_reference
from ..spi.errors import LettersRefused
from ..spi.keys.common import NAME, QUEUE_TOPIC, TOLERANCE, TRANSFORMS
from ..spi.keys.labels import LABELS, is_label, read_labels
from ..spi.keys.letters import CONNECTOR, LETTERS
from ..stores.files.keys import SINK_ADOPT, SOURCE_PATH
from .dead_letter_queue import QUEUE_PATH
from .error_keys import MAX_RATIO
from .pipeline_keys import SOURCE_TYPE, PipelineTypes

_OF_FILE: Final = re.compile(r"\binput_file_|(?<![\w`])_metadata\b", re.IGNORECASE)
"""Matches in SQL that asks for the file of a row."""
_OF_FIRST: Final = (SINK_ADOPT, MAX_RATIO)
"""Keys that are for one connector once, and about how many of all its rows are bad."""
_LABEL: Final = "retry-of"


def retry_config(
    config: Mapping[str, str], task_config: Mapping[str, str], name: str
) -> Mapping[str, str]:
    """Return the config of the connector `name`; see `Connector.retry_config`."""
    queue = _folder_of(config)
    for key, value in config.items():
        if key.startswith(f"{TRANSFORMS}.") and _OF_FILE.search(value):
            raise LettersRefused(
                f"{key} asks for the file of a row, and that of a retried row is one of letters"
            )
    source = PipelineTypes.of(config).source.letter_keys(config, task_config)
    kept = {key: value for key, value in config.items() if key not in _OF_FIRST}
    kept = {key: value for key, value in kept.items() if not key.startswith("source.")}
    own = {
        NAME: name,
        SOURCE_TYPE: LETTERS,
        SOURCE_PATH: queue,
        CONNECTOR: config[NAME],
        TOLERANCE: "all",
        QUEUE_PATH: f"{queue.rstrip('/')}-retry",
    }
    if is_label(config[NAME]):
        labels = {**read_labels(config), _LABEL: config[NAME]}
        own[LABELS] = ", ".join(f"{label}={value}" for label, value in labels.items())
    return {**kept, **source, **own}


def _folder_of(config: Mapping[str, str]) -> str:
    """Return the folder of dead letters; raises `LettersRefused`."""
    if config.get(QUEUE_TOPIC):
        raise LettersRefused(
            f"they are in a topic ({QUEUE_TOPIC}), and a retry reads a folder: a record of the "
            "topic does not say whether a transform had changed the row"
        )
    queue = config.get(QUEUE_PATH, "")
    if not queue or has_reference(queue):
        why = "has a ${...} reference, which only workers resolve" if queue else "is not set"
        raise LettersRefused(f"{QUEUE_PATH} {why}")
    return queue
