"""Validates new offsets of a stopped connector, and finds them for a seek, with its class.

The class is called in the REST process, without a task, with the logged config: its secrets are
decrypted, but references to files and variables of workers are not resolved.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, TypeVar

from .....actors.settings import HIDDEN
from .....events.commits import Lag, identity
from .....events.records import ConnectorConfig
from ....config.redaction import Redaction
from ....config.secrets import CannotUnseal, Vault, is_sealed, passwords_in
from ....pipeline.connectors.plugins import Plugin, Plugins
from ....pipeline.spi.context import ExternalAccess
from ....pipeline.spi.errors import Away, OffsetRefused, PluginUnknown
from ....pipeline.spi.keys.common import CONNECTOR_CLASS
from ....pipeline.spi.offsets import PartitionOffset, Seek
from ..server.errors import ApiError
from .external_checks import ExternalChecks, Unchecked

T = TypeVar("T")
MOST_MOVES: Final = 200_000
"""The maximum number of offsets that are changed at once: the group gets them in one message."""
_KEPT: Final = "nothing was changed"


@dataclass(frozen=True, slots=True)
class OffsetJudge:
    """A connector's class with the connector's decrypted config."""

    plugin: Plugin
    config: Mapping[str, str]
    checks: ExternalChecks
    secrets: Redaction = field(default_factory=Redaction)

    @classmethod
    def of(
        cls, plugins: Plugins, vault: Vault, checks: ExternalChecks, stored: ConnectorConfig
    ) -> "OffsetJudge":
        """Return the class of a connector; raises `ApiError` if it is not installed here."""
        name = stored.connector
        sealed = [key for key, value in stored.config.items() if is_sealed(value)]
        try:
            plugin = plugins.find(stored.config.get(CONNECTOR_CLASS, ""))
            plain = {key: vault.unseal(name, each) for key, each in stored.config.items()}
        except (PluginUnknown, CannotUnseal) as error:
            told = f"the offsets of {name} cannot be judged here: {error}; {_KEPT}"
            raise ApiError(HTTPStatus.BAD_REQUEST, told) from None
        judge = cls(plugin, plain, checks)
        hidden = {plain[key] for key in sealed}
        hidden |= {part for value in hidden for part in passwords_in(value)}
        judge.secrets.learn(dict.fromkeys(hidden - {""}, HIDDEN))
        return judge

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
