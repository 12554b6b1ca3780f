"""How much of their history the control logs keep (LOG.md §10)."""

from dataclasses import dataclass, replace
from typing import Final, Self


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of the history that a control log keeps; 0: no limit."""

    ms: int = 0
    epochs: int = 0
    bytes: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether anything is ever trimmed."""
        return bool(self.ms or self.epochs or self.bytes)

    def with_limits(self, ms: int | None, epochs: int | None, most_bytes: int | None) -> Self:
        """Return these limits, those that are not None replaced."""
        return replace(
            self,
            ms=self.ms if ms is None else ms,
            epochs=self.epochs if epochs is None else epochs,
            bytes=self.bytes if most_bytes is None else most_bytes,
        )


UNLIMITED: Final = Retention()
"""All of it is kept."""
