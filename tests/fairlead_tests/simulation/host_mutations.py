# pyright: basic
"""Ways to switch the rules of several hosts off, one at a time.

Those that the product has in a module of its own are switched off there; what a real process does
with files and sockets is switched off in the simulated one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairlead.actors.group.host import UnconfirmedAnswers
from fairlead.events.log.frame import Entry
from fairlead.runtime.node.door.claims import ClaimRule, Sight
from fairlead.runtime.node.door.delivery import AnswersAhead, LogEnds
from fairlead.runtime.simulation.hosts.host import SimulatedHost
from fairlead.runtime.simulation.hosts.owner import OwnerProcess
from fairlead.runtime.simulation.hosts.store import SimulatedStore
from fairlead_tests.simulation.mutations import Patch, always, resume_with_short_sessions


def speak_before_the_append_counts(patch: Patch) -> None:
    write = OwnerProcess._write

    def say_first(self: OwnerProcess, decided: Any, answers: Any) -> None:
        self._say(self._held.take(answers, has_written=True))
        write(self, decided, ())

    patch.setattr(OwnerProcess, "_write", say_first)


def copy_before_the_store(patch: Patch) -> None:
    append, copy = OwnerProcess._append, SimulatedHost.copy

    def copy_first(
        self: Any, log: str, entries: Sequence[Any], then: Any, live: Any = None
    ) -> None:
        base = getattr(self._host, log).end
        append(self, log, entries, then, live)
        wall_ms = self._clock.wall_ms
        copied = (
            Entry(base + number, each.type, each.version, each.key, wall_ms, each.value)
            for number, each in enumerate(entries)
        )
        copy(self._host, log, list(copied))

    patch.setattr(OwnerProcess, "_append", copy_first)
    patch.setattr(SimulatedHost, "copy", lambda *_: None)


def copy_each_log_by_itself(patch: Patch) -> None:
    always(patch, SimulatedHost, "_may_copy", answer=True)


def go_on_after_an_unknown_outcome(patch: Patch) -> None:
    append = OwnerProcess._append

    def remember(self: Any, log: str, entries: Sequence[Any], then: Any, live: Any = None) -> None:
        self.pending = then
        append(self, log, entries, then, live)

    def lose(self: Any, number: int) -> None:
        if number == self._asked and self.is_busy:
            self._asked += 1
            self.pending()

    patch.setattr(OwnerProcess, "_append", remember)
    patch.setattr(OwnerProcess, "_lose", lose)


def answer_without_a_word_of_the_store(patch: Patch) -> None:
    patch.setattr(UnconfirmedAnswers, "take", lambda _, answers, **__: answers)


def take_a_beat_under_way_for_a_word(patch: Patch) -> None:
    confirm = UnconfirmedAnswers.confirm

    def confirm_all(self: UnconfirmedAnswers) -> Any:
        leaving, self._waiting = self._waiting, []
        return [*confirm(self), *leaving]

    patch.setattr(UnconfirmedAnswers, "confirm", confirm_all)


def deliver_before_the_copies(patch: Patch) -> None:
    patch.setattr(AnswersAhead, "arrive", lambda _, answer, __: [answer])


def deliver_by_the_control_log_alone(patch: Patch) -> None:
    patch.setattr(LogEnds, "have", lambda ends, needed: ends.control >= needed.control)


def fence_nobody(patch: Patch) -> None:
    always(patch, SimulatedStore, "_is_fenced", answer=False)


def claim_before_the_logs_are_read(patch: Patch) -> None:
    original = ClaimRule.silence_of_claim

    def silence(self: ClaimRule, sight: Sight) -> float | None:
        return original(self, replace(sight, is_whole=True))

    patch.setattr(ClaimRule, "silence_of_claim", silence)


begin_with_short_sessions = resume_with_short_sessions
"""A new owner on another host is a new process of the group as any other."""
