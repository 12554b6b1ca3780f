"""Which cases of a test each run has, and which are a soak's."""

from collections.abc import Iterable

import pytest


def thinned(cases: Iterable[object], one_in: int) -> list[object]:
    """Return the parameters of a test: one case in so many is for each run, a soak has the others.

    It is for cases that take the same ways through the program, with other values. A case of
    several values is a tuple of them.
    """
    found: list[object] = []
    for number, each in enumerate(cases):
        values = each if isinstance(each, tuple) else (each,)
        marks = [pytest.mark.soak] if number % one_in else []
        found.append(pytest.param(*values, marks=marks))
    return found
