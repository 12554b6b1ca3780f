# pyright: basic
"""Reads the dead letter queue of a config in a process that runs none of its tasks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..installed import pip_install
from ..spi.config import ConfigInvalid, any_reference, has_reference
from ..spi.context import ExternalAccess
from ..spi.errors import LettersRefused, SinkAway
from ..spi.keys.common import NAME, QUEUE_TOPIC, TOLERANCE
from ..spi.rows import LetterPage, LetterQuery
from ..stores.files.sink.letter_files import LetterFolder
from .dead_letter_queue import QUEUE_HEADERS, QUEUE_PATH, end_of_topic

_UNRESOLVED: Final = "has a ${...} reference, which only workers resolve, so it is not read here"


def read_letters(
    config: Mapping[str, str], outside: ExternalAccess, query: LetterQuery
) -> LetterPage:
    """Return a page of the letters of a config's queue; raises `LettersRefused`, `SinkAway`."""
    path, topic = config.get(QUEUE_PATH, ""), config.get(QUEUE_TOPIC, "")
    if topic:
        return _read_topic(config, outside, query, topic)
    if not path:
        raise LettersRefused(
            "its config has no dead letter queue: bad rows end the task, or are dropped and "
            f"counted. Set {TOLERANCE}=all, and {QUEUE_PATH} or {QUEUE_TOPIC}, to keep them"
        )
    if has_reference(path):
        raise LettersRefused(f"{QUEUE_PATH} {_UNRESOLVED}: read the files of the folder")
    if flaw := outside.reach.flaw_in_path(path):
        raise LettersRefused(f"{QUEUE_PATH}: {flaw}")
    return LetterFolder(Path(path), config[NAME]).read(query)


def _read_topic(
    config: Mapping[str, str], outside: ExternalAccess, query: LetterQuery, topic: str
) -> LetterPage:
    try:
        from ..stores.kafka.sink.dead_letters import letter_records  # noqa: PLC0415  # an extra
    except ImportError:
        raise LettersRefused(f"{QUEUE_TOPIC} needs `{pip_install('kafka')}` on this node") from None
    end = end_of_topic(config)
    if has_reference(topic) or any_reference(f"{end}.", config):
        what = f"{QUEUE_TOPIC}, or a key of {end}.*,"
        raise LettersRefused(f"{what} {_UNRESOLVED}: read topic {topic} by Kafka's own tools")
    try:
        records = letter_records(outside, config, end, topic)
        try:
            page = records.read(config[NAME], query)
        finally:
            records.close()
    except ConfigInvalid as error:
        raise SinkAway(str(error)) from None
    if config.get(QUEUE_HEADERS, "").lower() == "true":
        return page
    return page._replace(where=f"{page.where}, without reasons: {QUEUE_HEADERS} is false")
