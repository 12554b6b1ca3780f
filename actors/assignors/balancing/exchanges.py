"""Level shares under demands: chains of gifts, where no single gift helps.

A worker that is full of work which only its like may run can still be relieved: it gives to
one who gives something else to a third. While a chain leads from a worker to one that would be
less full even with one more, the shares are not level; when there is none, they are as level
as the demands allow, from the fullest worker down. (The loads are the base of a polymatroid:
what no chain improves is the best there is.)
"""

from .standing import Standing

Step = tuple[int, int]
"""Who gave it, and of which class."""


def exchange(standing: Standing) -> bool:
    """Make all chains of gifts that level the shares; tell whether there was any."""
    has_changed = False
    while _relieve_some(standing):
        has_changed = True
    return has_changed


def _relieve_some(standing: Standing) -> bool:
    """Relieve who can be, the fullest first; tell whether there was anybody.

    Whom one has reached the next ones leave alone, so that all of it costs no more than one
    search. If nobody was relieved nobody can be: whoever is reached at all is reached by the
    fullest that can reach it.
    """
    has_changed = False
    search = _Search(standing)
    takers = range(len(standing.loads))
    for start in sorted(takers, key=lambda each: (-standing.fullness(each), each)):
        if start not in search.steps:
            end = search.reach(start)
            if end is not None:
                _pass_on(standing, search.steps, start, end)
                has_changed = True
    return has_changed


class _Search:
    """Finds whom chains of gifts reach; keeps for each of those the last step."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._passed: set[int] = set()
        self.steps: dict[int, Step] = {}

    def reach(self, start: int) -> int | None:
        """Return one whom that relieves this taker to reach, or None if there is nobody."""
        standing, steps = self._standing, self.steps
        steps[start] = start, -1
        queue = [start]
        for giver in queue:  # it grows
            for number, amount in standing.has[giver].items():
                if not amount or number in self._passed:
                    continue
                self._passed.add(number)
                reached = [each for each in standing.seated[number] if each not in steps]
                steps.update(dict.fromkeys(reached, (giver, number)))
                queue += reached
                end = min(reached, key=standing.with_one_more, default=start)
                if standing.with_one_more(end) < standing.fullness(start):
                    return end
        return None


def _pass_on(standing: Standing, steps: dict[int, Step], start: int, end: int) -> None:
    """Pass along the chain as much as every giver has, and as does not turn the tables."""
    chain: list[tuple[int, int, int]] = []
    receiver = end
    while receiver != start:
        giver, number = steps[receiver]
        chain.append((giver, number, receiver))
        receiver = giver
    scales = standing.scales
    ahead = standing.fullness(start) + scales[start] - standing.fullness(end) - 1
    amount = min(
        ahead // (scales[start] + scales[end]),
        *(standing.has[giver][number] for giver, number, _ in chain),
    )
    for giver, number, receiver in chain:
        standing.shift(giver, number, receiver, amount)
