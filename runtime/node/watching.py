"""How the node's first process asks others, again and again, whether they are there."""

import time
from collections.abc import Callable
from typing import Final

from ...actors.door.actor import Question
from .silence import PING_SECONDS, Silence

LOOK_SECONDS: Final = 0.2
"""How long one look waits for an answer: what else is to be done must not wait longer."""


class Watch:
    """One process that is asked, and how long it has been silent."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        self._question: Question | None = None
        self.forget()

    def forget(self) -> None:
        """Begin anew: it is another process from now on."""
        self._hang_up()
        self.silence = Silence(self._limit_seconds, time.monotonic())
        self.was_lost = False
        """Whether the last question did not arrive."""
        self._ask_at = 0.0

    def look(self, ask: Callable[[], Question]) -> object | None:
        """Return its answer, if there is one by now; it is asked when nothing is under way."""
        now = time.monotonic()
        if self._question is None:
            if now < self._ask_at:
                self.silence.look(now, is_silent=self.silence.seconds > 0)
                return None
            self._question, self._ask_at = ask(), now + PING_SECONDS
        answer = self._question.answer(LOOK_SECONDS)
        self.was_lost = self._question.is_lost
        if answer is not None or self.was_lost:
            self._hang_up()
        self.silence.look(time.monotonic(), is_silent=answer is None)
        return answer

    def _hang_up(self) -> None:
        if self._question is not None:
            self._question.close()
            self._question = None
