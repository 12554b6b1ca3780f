"""Which known name an unknown one was probably meant to be: of keys, settings, plugins.

`meant_by` judges: a key that is nearly a known one is refused for it. `hint` advises somebody
whose name is refused anyway, and looks further.

Two keys are near if they are equal but for case and separators, if two edits (a letter added,
left out, replaced, or swapped with the next) lead from one to the other, or if the written one
lacks the last words of the known one. The search compares lengths before anything else, so
what it costs hangs on the length of the known keys and not on what was written.
"""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

_SEPARATORS = re.compile(r"[\s._-]+")
_DIGITS = re.compile(r"\d+")
_MOST_EDITS = 2
_ONE_EDIT_FROM, _TWO_EDITS_FROM = 4, 8
"""Letters that a known key must have for one edit, or two, to lead to it."""
_SPARE = 20
"""How many separators more than the longest known key has letters are looked through."""
_LONGEST_COMPARED = 200
"""How much of a name is searched for what is like it: what is longer is nothing known."""
_LEAST_ALIKE = 0.5


def hint(written: str, names: Iterable[str]) -> str:
    """Return the question whether the most similar known name was meant; "" if none is similar."""
    meant = most_similar(written, [*names])
    return "" if meant is None else did_you_mean(meant)


def most_similar(written: str, names: Collection[str]) -> str | None:
    """Return the known name that is most similar to an unknown one; None if none is similar."""
    if (meant := meant_by(written, names)) is not None:
        return meant
    alike = get_close_matches(written[:_LONGEST_COMPARED], names, 1, cutoff=_LEAST_ALIKE)
    return next(iter(alike), None)


def did_you_mean(name: str) -> str:
    """Return the question whether this name was meant."""
    return f"did you mean {name}?"


def meant_by(key: str, names: Collection[str], families: Iterable[str] = ()) -> str | None:
    """Return the known key nearest to an unknown one; None if none is near.

    `families` are prefixes such as `source.option.`: what follows one is kept as it is written.
    Keys that differ in a number alone are taken for members of one family, not for a mistake.
    """
    for family in families:
        words = family.count(".")
        written = key.split(".", words)
        if len(written) > words and meant_by(".".join(written[:words]), [family[:-1]]):
            return family + written[words]
    if len(key) > max(map(len, names), default=0) + _SPARE:
        return None
    plain = _plain(key)
    for edits in range(_MOST_EDITS + 1):
        for each in names:
            if _is_near(plain, _plain(each), edits) and not _differ_in_numbers(key, each):
                return each
    return next((each for each in names if "." in key and each.startswith(f"{key}.")), None)


def _is_near(written: str, known: str, edits: int) -> bool:
    allowed = (len(known) >= _ONE_EDIT_FROM) + (len(known) >= _TWO_EDITS_FROM)
    return edits <= allowed and _is_within(written, known, edits)


def _is_within(one: str, other: str, edits: int) -> bool:
    """Return whether so many edits lead from one text to another (optimal string alignment)."""
    if abs(len(one) - len(other)) > edits:
        return False
    pairs = enumerate(zip(one, other, strict=False))
    same = next((place for place, (mine, yours) in pairs if mine != yours), None)
    if same is None:
        return True  # one begins with the other, and what is left of that is short enough
    one, other = one[same:], other[same:]
    return edits > 0 and (
        _is_within(one[1:], other[1:], edits - 1)
        or _is_within(one[1:], other, edits - 1)
        or _is_within(one, other[1:], edits - 1)
        or (one[:2] == other[1::-1] and _is_within(one[2:], other[2:], edits - 1))
    )


def _plain(key: str) -> str:
    return _SEPARATORS.sub("", key.casefold())


def _differ_in_numbers(one: str, other: str) -> bool:
    return one != other and _DIGITS.sub("0", one) == _DIGITS.sub("0", other)
