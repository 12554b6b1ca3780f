"""The keys of sources of dead letters that say what the rows in letters are."""

from typing import Final

from ..config import Importance, Width
from .kinds import flag_key, text_key

LETTERS: Final = "dead-letters"
"""The type of a source of letters in a folder."""
LETTER_TOPIC: Final = "dead-letter-topic"
"""The type of a source of letters in a topic."""
CONNECTOR: Final = "source.connector"
FORMAT: Final = "source.format"
SCHEMA: Final = "source.schema"
IS_INFERRED: Final = "source.schema.is.inferred"

LETTER_KEYS: Final = (
    text_key(
        CONNECTOR,
        "The connector whose dead letters are read; those of others in its folder or topic are "
        "left out.",
        importance=Importance.HIGH,
        required=True,
        width=Width.LONG,
    ),
    flag_key(
        IS_INFERRED,
        f"Whether `{SCHEMA}` was inferred by that connector: then a row with other columns is "
        "refused again, and so is a text that loses zeros or a sign as a number.",
        default=False,
        importance=Importance.LOW,
    ),
)
