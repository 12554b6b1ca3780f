"""Tells when to try again what often fails."""

from typing import Final

_LONGEST: Final = 31


class ProofAttempts:
    """Counts attempts; after each failure in a row twice as many turns pass without one."""

    def __init__(self, *, is_allowed: bool) -> None:
        self._is_allowed = is_allowed
        self._failures = 0
        """How many attempts have failed in a row."""
        self._pause = 0
        """How many turns are left without an attempt."""
        self.has_succeeded = False
        """Whether there was an attempt in the last turn, which did not fail."""

    @property
    def is_due(self) -> bool:
        """Whether to try in this turn."""
        return self._is_allowed and not self._pause

    def end_turn(self, *, is_tried: bool, has_failed: bool) -> None:
        """Note the end of a turn."""
        self.has_succeeded = is_tried and not has_failed
        if is_tried:
            self._failures = self._failures + 1 if has_failed else 0
            self._pause = min(_LONGEST, (1 << self._failures) - 1)
        else:
            self._pause = max(0, self._pause - 1)
