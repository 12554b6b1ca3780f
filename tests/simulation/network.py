"""Messages that come late, twice, or not at all."""

from collections.abc import Callable
from random import Random

from simulation.clock import Clock


class Network:
    """Delivers both ways; in foul weather it loses, doubles and delays."""

    def __init__(self, clock: Clock, dice: Random) -> None:
        self.clock = clock
        self.dice = dice
        self.loss = dice.choice([0.02, 0.1, 0.25])
        self.doubling = dice.choice([0.0, 0.05])
        self.slowest_ms = dice.choice([50, 1_000, 9_000])
        self.severed = 0
        """Counts the coordinator's deaths: what was under way to or from it is gone."""

    def calm(self) -> None:
        """Lose nothing from now on, and be quick."""
        self.loss, self.doubling, self.slowest_ms = 0.0, 0.0, 50

    def send(self, deliver: Callable[[], None]) -> None:
        """Deliver a message, as the weather permits."""
        if self.dice.random() < self.loss:
            return
        severed = self.severed
        for _ in range(2 if self.dice.random() < self.doubling else 1):
            slow = self.dice.random() < 0.1
            delay_ms = self.dice.randint(1, self.slowest_ms if slow else 50)
            self.clock.after(delay_ms, lambda: deliver() if severed == self.severed else None)
