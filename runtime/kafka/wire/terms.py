"""Conversions for all APIs: durations and error codes."""
# pyright: basic

from datetime import timedelta
from typing import Final

from kio.schema.errors import ErrorCode

from ....actors.messages.errors import MEANINGS, Error

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
