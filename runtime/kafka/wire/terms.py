"""Conversions for all APIs: durations, error codes, and the ids of topics."""
# pyright: basic

from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from ....actors.messages.errors import MEANINGS, Error
from ....events.records import Topic

MS: Final = timedelta(milliseconds=1)
NO_TIME: Final = timedelta()
NOT_ASKED_FOR: Final = -(1 << 31)
"""Kafka's value for authorized operations that were not requested."""


def code(error: Error) -> ErrorCode:
    """Return Kafka's code of an error; UNKNOWN_SERVER_ERROR if it has none."""
    try:
        return ErrorCode(MEANINGS[error].code)
    except ValueError:
        return ErrorCode.unknown_server_error


NO_TOPIC: Final = "\0"
"""How the name of a topic with an unknown id begins here: no topic has such a name."""


class TopicIds:
    """The names of topics by their ids, and the reverse, as of one poll of the brokers."""

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        self._topics = topics
        self._names = {each.topic_id: name for name, each in topics.items()}

    def name_of(self, topic_id: UUID) -> str:
        """Return the name of a topic; one that begins with `NO_TOPIC` for an unknown id."""
        return self._names.get(topic_id.hex) or NO_TOPIC + topic_id.hex

    def id_of(self, name: str) -> UUID | None:
        """Return the id of a topic, also of an unknown one; None: there is no such topic."""
        if name.startswith(NO_TOPIC):
            return UUID(hex=name.removeprefix(NO_TOPIC))
        topic = self._topics.get(name)
        return UUID(hex=topic.topic_id) if topic else None


NO_TOPIC_IDS: Final = TopicIds({})
