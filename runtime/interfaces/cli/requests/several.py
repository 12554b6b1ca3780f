"""Several names: one order for each, or the objects that have them."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from ..output.phrases import NAMES_MAX
from ..output.printing import Failed
from ..output.progress import show_progress
from .client import RefusedByCluster

T = TypeVar("T")
NameT = TypeVar("NameT", bound=Hashable)


class AbsentError(Failed):
    """An object that is named is not there."""

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


def for_each(
    names: Iterable[NameT],
    order: Callable[[NameT], None],
    kind: str = "connector",
    *,
    then: Callable[[list[NameT]], None] | None = None,
) -> None:
    """Send an order for each connector or task; a refused one does not keep the others from it.

    `then` is called with the names of the others, if there are any: to wait for them, say. Raises
    `Failed` at the end, with the names and messages of those that were refused.
    """
    names = dict.fromkeys(names)
    refused: dict[object, RefusedByCluster] = {}
    with show_progress(f"{kind}s", len(names)) as advance:
        for done, name in enumerate(names, 1):
            try:
                order(name)
            except RefusedByCluster as error:
                if len(names) == 1:
                    raise
                refused[name] = error
            advance(done)
    messages = [
        f"{kind if isinstance(name, str) else 'task'} {name}: {error}"
        for name, error in refused.items()
    ]
    if then is not None and (taken := [each for each in names if each not in refused]):
        try:
            then(taken)
        except Failed as error:
            if not messages:
                raise
            messages.append(str(error))
    if messages:
        raise Failed("\n".join(messages))


def pick(
    kind: str, wanted: Sequence[str], objects: Sequence[T], names_of: Callable[[T], Sequence[str]]
) -> list[T]:
    """Return the objects with the wanted names, all of them if there is no wanted name.

    An object may have several names, of which the first is shown. Raises `AbsentError`, if
    a name is none of theirs.
    """
    named = [(names_of(each), each) for each in objects]
    for name in wanted:
        if not any(name in names for names, _ in named):
            there = list(dict.fromkeys(names[0] for names, _ in named))
            more = f" and {len(there) - NAMES_MAX} more" if len(there) > NAMES_MAX else ""
            listed = ", ".join(there[:NAMES_MAX]) or "none"
            raise AbsentError(f"there is no {kind} {name}; there is: {listed}{more}", name)
    return [each for names, each in named if not wanted or not set(wanted).isdisjoint(names)]
