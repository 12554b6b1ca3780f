"""The one grammar of all verbs: `VERB [KIND] NAME…`, with the kind in the singular or the plural.

The first word is the kind if it is the word of one; so a connector called `worker` is reached as
`connector worker`. `KIND/NAME` is the same. Without a kind a name is that of a connector, or of a
worker for the verbs that are of workers. A task is called as tables print it, `flights-0`, or
`flights/0` as in kcctl.
"""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, NamedTuple

from ..output.printing import Misused


class Kind(StrEnum):
    """The kinds of objects that have names."""

    CONNECTOR = "connector"
    TASK = "task"
    WORKER = "worker"
    GROUP = "group"
    PLUGIN = "plugin"
    ASSIGNOR = "assignor"
    OFFSET = "offset"
    PLACEMENT = "placement"
    LOGGER = "logger"
    NODE = "node"

    @property
    def plural(self) -> str:
        """The plural of the kind's name."""
        return f"{self.value}s"


CONNECTORS: Final = (Kind.CONNECTOR,)
WORKERS: Final = (Kind.WORKER,)


class NamedObjects(NamedTuple):
    """The words of a verb: of which kind, and the names."""

    kind: Kind
    names: list[str]
    is_told: bool
    """Whether the kind was among the words."""


class TaskName(NamedTuple):
    """A task, by its connector and its number."""

    connector: str
    number: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.number}"


_KINDS: Final = {word: each for each in Kind for word in (each.value, each.plural)}
_TASK: Final = re.compile(r"(.+)[-/](\d{1,9})", re.DOTALL | re.ASCII)
SIMILAR: Final = 0.8


def split_words(
    verb: str, words: Sequence[str], kinds: Sequence[Kind], *, may_be_all: bool = False
) -> NamedObjects:
    """Return the kind and the names; without a kind, names are of the first of `kinds`.

    With `may_be_all` there may be a kind without names, and no word at all. Raises `Misused` for a
    kind that the verb does not know, and for no name.
    """
    default = kinds[0]
    if not words:
        if may_be_all:
            return NamedObjects(default, [], is_told=False)
        raise Misused(f"say of what: `fairlead {verb} {default} NAME`")
    kind, rest = _told_kind(words)
    if kind is None:
        if len(words) > 1 and (meant := find_similar_kind(words[0], kinds)):
            also = _also_called(verb, " ".join(words), default)
            raise Misused(f"{words[0]!r} is no kind (did you mean {meant}?){also}")
        return NamedObjects(default, rest, is_told=False)
    if kind not in kinds:
        raise Misused(_not_of(verb, kind, words[0], kinds))
    if not rest and not may_be_all:
        also = _also_called(verb, words[0], default)
        raise Misused(f"say which {kind}: `fairlead {verb} {kind} NAME`{also}")
    return NamedObjects(kind, rest, is_told=True)


def _told_kind(words: Sequence[str]) -> tuple[Kind | None, list[str]]:
    """Return the kind in the words, `KIND NAME…` or `KIND/NAME…`, and the names."""
    if kind := parse_kind(words[0]):
        return kind, list(words[1:])
    parted = [_parted(each) for each in words]
    if parted[0] is None:
        return None, list(words)
    told = [each for each in parted if each is not None]
    if len(told) < len(words) or {each for each, _ in told} != {told[0][0]}:
        raise Misused(f"{' '.join(words)}: all names are of one kind, KIND/NAME or KIND NAME…")
    return told[0][0], [name for _, name in told]


def parse_kind(word: str) -> Kind | None:
    """Return the kind of which this is the word."""
    return _KINDS.get(word.lower())


def find_similar_kind(word: str, kinds: Collection[Kind]) -> str:
    """Return the name of a kind that is similar to a misspelt word; "" if none is."""
    words = [each.plural for each in kinds] + [each.value for each in kinds]
    close = get_close_matches(word.lower(), words, 1, SIMILAR)
    return close[0] if close else ""


def parse_task(name: str) -> TaskName | None:
    """Return the task of this name, None if no task can be called so."""
    found = _TASK.fullmatch(name)
    return TaskName(found[1], int(found[2])) if found else None


def join_words(kinds: Sequence[str]) -> str:
    """Return kinds as words: `connector, worker or group`."""
    *others, last = kinds
    return f"{', '.join(others)} or {last}" if others else last


def _parted(word: str) -> tuple[Kind, str] | None:
    """Return the parts of `KIND/NAME`."""
    before, slash, name = word.partition("/")
    kind = parse_kind(before) if slash and name else None
    return (kind, name) if kind else None


def _not_of(verb: str, kind: Kind, word: str, kinds: Sequence[Kind]) -> str:
    remedies = {
        Kind.TASK: "; a task has no state of its own: name its connector",
        Kind.OFFSET: "; of offsets: `fairlead offsets`",
        Kind.LOGGER: "; the level of one: `fairlead log-level`",
    }
    remedy = remedies.get(kind, "") if Kind.CONNECTOR in kinds else ""
    also = _also_called(verb, word, kinds[0])
    article = "an" if kind[0] in "ao" else "a"
    return f"`fairlead {verb}` is of a {join_words(kinds)}, not of {article} {kind}{remedy}{also}"


def _also_called(verb: str, word: str, default: Kind) -> str:
    return f"; a {default} that is called so: `fairlead {verb} {default} {word}`"
