"""Bisection of a batch that failed because of its input, if the order of its ranges is free.

The error of a transform or a sink seldom names the range that caused it. So the source reads the
ranges of such a batch in halves, until a single range fails. That range is read last, so that no
other range waits for it.
"""

from collections.abc import Sequence
from typing import Any

from ..engines.engine import TaskError
from ..engines.failures import session_is_gone
from ..spi.errors import BadInput
from ..spi.source import Source


class BatchSplit(Exception):  # noqa: N818  # no failure of the task
    """A batch failed because of its input, and the source has deferred its ranges."""


def defer(source: Source[Any], ranges: Sequence[Any], error: BaseException) -> None:
    """Ask a source to defer the ranges of a failed batch.

    If it supports that, this raises `BatchSplit`, or for a single range `BadInput` with the
    range's name.
    """
    is_of_input = isinstance(error, BadInput | TaskError) and not session_is_gone(error)
    if not is_of_input or getattr(error, "is_deferred", False):
        return
    name = source.defer(ranges)
    if not name:
        return
    if len(ranges) > 1:
        raise BatchSplit(f"a batch of {name} failed, and is read again in halves: {error}")
    alone = BadInput(f"{name}, in a batch of its own: {error}")
    alone.is_deferred = True
    raise alone from error
