"""What becomes of a batch that fails for its input, where the order of its ranges does not matter.

A transform or a sink seldom says which range is to blame. So the source reads the ranges of such a
batch in halves, until one of them fails alone. That one is read last: no other range waits for it.
"""

from collections.abc import Sequence
from typing import Any

from ..spark.engine import TaskError
from ..spark.failures import session_is_gone
from ..spi.errors import BadInput
from ..spi.source import Source


class BatchHalved(Exception):  # noqa: N818  # no failure of the task
    """A batch failed for its input, and its source has put the ranges off."""


def put_off(source: Source[Any], ranges: Sequence[Any], error: BaseException) -> None:
    """Have a source put off the ranges that a batch failed with, if it can.

    Then it raises `BatchHalved`, or for a single range `BadInput` with its name.
    """
    is_of_input = isinstance(error, BadInput | TaskError) and not session_is_gone(error)
    if not is_of_input or getattr(error, "is_put_off", False):
        return
    name = source.put_off(ranges)
    if not name:
        return
    if len(ranges) > 1:
        raise BatchHalved(f"a batch of {name} failed, and is read again in halves: {error}")
    alone = BadInput(f"{name}, in a batch of its own: {error}")
    alone.is_put_off = True
    raise alone from error
