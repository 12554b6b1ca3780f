"""Names of topics, as Kafka allows them."""

from typing import Final

LONGEST_TOPIC: Final = 249
"""Characters of a topic's name."""


def is_topic_name(text: str) -> bool:
    """Tell whether a text can be the name of a topic, or its id, and part of a key of the log."""
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return 0 < len(text) <= LONGEST_TOPIC and "\0" not in text
