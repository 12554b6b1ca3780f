"""What all calls have in common on the wire: durations, and errors as Kafka numbers them."""
# pyright: basic

from datetime import timedelta
from typing import Final

from kio.schema.errors import ErrorCode

from ....actors.messages.errors import MEANINGS, Error

MS: Final = timedelta(milliseconds=1)
NO_TIME: Final = timedelta()
NOT_ASKED_FOR: Final = -(1 << 31)
"""What the authorized operations are where nobody asked for them."""


def code(error: Error) -> ErrorCode:
    """Return an error as Kafka numbers it; one that it has no number for is its UNKNOWN."""
    try:
        return ErrorCode(MEANINGS[error].code)
    except ValueError:
        return ErrorCode.unknown_server_error
