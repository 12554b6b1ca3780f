"""Validates new offsets of a stopped connector, and finds them for a seek, with its class."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Final, TypeVar

from .....events.commits import Lag, identity
from ....pipeline.spi.context import ExternalAccess
from ....pipeline.spi.errors import Away, OffsetRefused
from ....pipeline.spi.offsets import PartitionOffset, Seek
from ..server.errors import ApiError
from .asked_connector import AskedConnector
from .external_checks import Unchecked

T = TypeVar("T")
MOST_MOVES: Final = 200_000
"""The maximum number of offsets that are changed at once: the group gets them in one message."""
_KEPT: Final = "nothing was changed"


class OffsetJudge(AskedConnector):
    """A connector's class, which judges the connector's offsets."""

    def check(self, offsets: Sequence[PartitionOffset]) -> None:
        """Raise `ApiError` if there are too many, or for the first that the class refuses."""
        if len(offsets) > MOST_MOVES:
            told = f"{len(offsets)} offsets are given, at most {MOST_MOVES} are changed at once"
            raise ApiError(
                HTTPStatus.BAD_REQUEST, f"{told}; {_KEPT}: send them in several requests"
            )

        def check_each(_: ExternalAccess) -> None:
            for number, (partition, offset) in enumerate(offsets):
                try:
                    self.plugin.made_by.check_offset(self.config, partition, offset)
                except OffsetRefused as refused:
                    raise OffsetRefused(f"offsets[{number}].{refused}") from None

        self._ask(check_each)

    def seek(self, to: Seek, current: Sequence[PartitionOffset]) -> Sequence[PartitionOffset]:
        """Return the offsets that change; raises `ApiError` if the class does not support it."""
        seek = self.plugin.made_by.seek
        sought = self._ask(lambda outside: seek(self.config, outside, to, current))
        offsets = {identity(partition): offset for partition, offset in current}
        moves = [each for each in sought if offsets.get(identity(each.partition)) != each.offset]
        if len(moves) > MOST_MOVES:
            told = (
                f"that changes {len(moves)} offsets, and at most {MOST_MOVES} are changed at once"
            )
            raise ApiError(HTTPStatus.BAD_REQUEST, f"{told}; {_KEPT}: reset them (DELETE) instead")
        return moves

    def lag(
        self, offsets: Sequence[PartitionOffset], looking: AbstractContextManager[None]
    ) -> Lag | None:
        """Return the input that is left after offsets; None if it cannot be found out now.

        `looking` is the context of the look itself, which may outlast this call.
        """

        def look(outside: ExternalAccess) -> Lag | None:
            with looking:
                return self.plugin.made_by.lag(self.config, outside, offsets)

        try:
            return self.checks.ask(self.plugin, look)
        except (OffsetRefused, Away, Unchecked):
            return None

    def _ask(self, question: Callable[[ExternalAccess], T]) -> T:
        try:
            return self.checks.ask(self.plugin, question)
        except OffsetRefused as refused:
            status, told = HTTPStatus.BAD_REQUEST, str(refused)
        except Away as away:
            status, told = HTTPStatus.SERVICE_UNAVAILABLE, f"the source is out of reach: {away}"
        except Unchecked as unchecked:
            status, told = HTTPStatus.SERVICE_UNAVAILABLE, f"the source was not asked: {unchecked}"
        raise ApiError(status, f"{self.secrets.hide(told)}; {_KEPT}")
