"""Level shares under demands: augmenting paths, where no single transfer helps.

A worker that is full of work which only its like may run can still be relieved: it gives to
one who gives something else to a third. While a path leads from a worker to one that would be
less full even with one more, the shares are not level; when there is none, they are as level
as the demands allow, from the fullest worker down. (The loads are the base of a polymatroid:
what no path improves is the best there is.)
"""

from .amounts import Amounts

Step = tuple[int, int]
"""Who gave it, and of which class."""


def exchange(amounts: Amounts) -> bool:
    """Follow all augmenting paths, until the shares are level; tell whether there was any."""
    has_changed = False
    while _relieve_some(amounts):
        has_changed = True
    return has_changed


def _relieve_some(amounts: Amounts) -> bool:
    """Relieve who can be, the fullest first; tell whether there was anybody.

    Whom one has reached the next ones leave alone, so that all of it costs no more than one
    search. If nobody was relieved nobody can be: whoever is reached at all is reached by the
    fullest that can reach it.
    """
    has_changed = False
    search = _Search(amounts)
    takers = range(len(amounts.loads))
    for start in sorted(takers, key=lambda each: (-amounts.fullness(each), each)):
        if start not in search.steps:
            end = search.reach(start)
            if end is not None:
                _pass_on(amounts, search.steps, start, end)
                has_changed = True
    return has_changed


class _Search:
    """Finds whom augmenting paths reach; keeps for each of those the last step."""

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts
        self._passed: set[int] = set()
        self.steps: dict[int, Step] = {}

    def reach(self, start: int) -> int | None:
        """Return one whom that relieves this taker to reach, or None if there is nobody."""
        amounts, steps = self._amounts, self.steps
        steps[start] = start, -1
        queue = [start]
        for giver in queue:  # it grows
            for number, amount in amounts.has[giver].items():
                if not amount or number in self._passed:
                    continue
                self._passed.add(number)
                reached = [each for each in amounts.eligible[number] if each not in steps]
                steps.update(dict.fromkeys(reached, (giver, number)))
                queue += reached
                end = min(reached, key=amounts.with_one_more, default=start)
                if amounts.with_one_more(end) < amounts.fullness(start):
                    return end
        return None


def _pass_on(amounts: Amounts, steps: dict[int, Step], start: int, end: int) -> None:
    """Pass along the path as much as every giver has, and as does not turn the tables."""
    path: list[tuple[int, int, int]] = []
    receiver = end
    while receiver != start:
        giver, number = steps[receiver]
        path.append((giver, number, receiver))
        receiver = giver
    scales = amounts.scales
    ahead = amounts.fullness(start) + scales[start] - amounts.fullness(end) - 1
    amount = min(
        ahead // (scales[start] + scales[end]),
        *(amounts.has[giver][number] for giver, number, _ in path),
    )
    for giver, number, receiver in path:
        amounts.shift(giver, number, receiver, amount)
