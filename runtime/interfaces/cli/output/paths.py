r"""Paths into what a verb answers, in kubectl's dialect of JSONPath, and columns that are paths.

`{.status.connector.state}` is a member of a member, `{[*].name}` one of each element or member,
`{[0]}` and `{[-1]}` an element, `{.config['tasks.max']}` or `{.config.tasks\.max}` a name with a
dot, `{..state}` a member at any depth, `{[?(@.state=="FAILED")]}` those elements for which that
holds, `{range …}` to `{end}` repeats what stands between for each value, `{"\n"}` is a text.
What is not there is nothing. No library reads this dialect: braces and `range` are kubectl's own.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from .printing import Misused

MOST_VALUES: Final = 1_000_000
"""How many values a path may find at most: `..` of `..` of a large answer would not end."""
_STEP: Final = re.compile(
    r"""(?P<deep>\.\.)?(?:
        \.?\[\s*(?P<index>-?\d+)\s*\]
      | \.?\[\s*(?P<start>-?\d*)\s*:\s*(?P<stop>-?\d*)\s*\]
      | \.?(?P<all>\[\s*\*\s*\]|\*)
      | \.?\[\s*(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\s*\]
      | \.?\[\s*\?\(\s*@(?P<inner>[^=!<>()]*?)\s*
            (?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>"[^"]*"|'[^']*'|[^"'()]+?)\s*)?\)\s*\]
      | \.?(?P<name>(?:[^\s.\[\]{}()'"*\\]|\\.)+)
    )""",
    re.VERBOSE,
)
_ACTION: Final = re.compile(r"\{((?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^{}])*)\}")
_SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class _Loop(NamedTuple):
    """A path, and what is written for each of its values."""

    path: str
    body: "list[_Part]"


class _Value(NamedTuple):
    """A path whose values are written."""

    path: str


_Part = str | _Value | _Loop


def expand_template(template: str, data: object) -> str:
    """Return a text with the values of its paths; raises `Misused`."""
    actions = [*_split(template if "{" in template else f"{{{template}}}")]
    return "".join(_write(_parse(actions), data))


def find_values(path: str, data: object) -> list[object]:
    """Return the values that a path leads to; raises `Misused`."""
    values = [data]
    for step in _steps(path):
        values = [found for value in values for found in _take(step, value)]
        if len(values) > MOST_VALUES:
            raise Misused(f"the path {path!r} finds more than {MOST_VALUES:,} values")
    return values


@dataclass(frozen=True, slots=True)
class PathColumn:
    """A column whose cells are the values of a path."""

    heading: str
    path: str

    def cell(self, row: object) -> str:
        """Return the cell of a row."""
        return ",".join(map(format_value, find_values(self.path, row))) or "<none>"


def parse_columns(columns: str) -> list[PathColumn]:
    """Return the columns in `NAME:.name,STATE:.state`; raises `Misused`."""
    parsed: list[PathColumn] = []
    for each in re.split(r",(?![^\[]*\])", columns):
        heading, colon, path = each.partition(":")
        if not (heading.strip() and colon and path.strip()):
            raise Misused(f"{each!r} is no column: write custom-columns=NAME:.name,STATE:.state")
        parsed.append(PathColumn(heading.strip(), _bare(path)))
        find_values(_bare(path), None)  # an error in it, before anything is asked
    return parsed


def format_value(value: object) -> str:
    """Return a value in a text: a text as it is, everything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _bare(path: str) -> str:
    stripped = path.strip()
    return stripped[1:-1] if stripped.startswith("{") and stripped.endswith("}") else stripped


def _split(template: str) -> Iterator[str | _Value]:
    """Yield the texts and the actions of a template, one after the other."""
    at = 0
    for action in _ACTION.finditer(template):
        yield _literal(template[at : action.start()])
        word = action[1].strip()
        is_text = word[:1] in {'"', "'"} and word[-1:] == word[:1] and len(word) > 1
        yield _unescape(word[1:-1]) if is_text else _Value(word)
        at = action.end()
    yield _literal(template[at:])


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise Misused(f"the template has a brace without its other one: {text!r}")
    return text


def _unescape(text: str) -> str:
    words = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda it: words.get(it[1], it[1]), text)


def _parse(actions: Sequence[str | _Value]) -> list[_Part]:
    """Return the parts of a template, with all that is repeated within its loop."""
    stack: list[_Loop] = [_Loop("", [])]
    for action in actions:
        if isinstance(action, str):
            stack[-1].body.append(action)
        elif action.path == "end":
            loop = stack.pop()
            if not stack:
                raise Misused("the template has an {end} without a {range …}")
            stack[-1].body.append(loop)
        else:
            word, _, path = action.path.partition(" ")
            is_loop = word == "range"
            find_values(path if is_loop else action.path, None)  # an error in it, before it is used
            if is_loop:
                stack.append(_Loop(path.strip(), []))
            else:
                stack[-1].body.append(action)
    if len(stack) > 1:
        raise Misused(f"the template has a {{range {stack[-1].path}}} without its {{end}}")
    return stack[0].body


def _write(parts: Sequence[_Part], data: object) -> Iterator[str]:
    for part in parts:
        match part:
            case str():
                yield part
            case _Value(path):
                yield " ".join(map(format_value, find_values(path, data)))
            case _Loop(path, body):
                for value in find_values(path, data):
                    yield from _write(body, value)


def _steps(path: str) -> Iterator[re.Match[str]]:
    """Yield the steps of a path; raises `Misused`."""
    rest = path.strip().removeprefix("$").removeprefix("@")
    at = 0 if rest != "." else 1
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise Misused(
                f"{path!r} is no path: write .status.connector.state, [*].name or"
                " .config['tasks.max']"
            )
        yield step
        at = step.end()


def _take(step: re.Match[str], value: object) -> Iterator[object]:
    """Yield what a step finds in a value."""
    for each in _below(value) if step["deep"] else (value,):
        yield from _take_one(step, each)


def _take_one(step: re.Match[str], value: object) -> Iterator[object]:
    name = step["quoted"] if step["quote"] else step["name"]
    if name is not None and isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        key = name if step["quote"] else re.sub(r"\\(.)", r"\1", name)
        if key in members:
            yield members[key]
    elif step["all"]:
        yield from _members(value)
    elif step["inner"] is not None:
        yield from (each for each in _members(value) if _holds(step, each))
    elif isinstance(value, list):
        yield from _elements(step, cast("list[object]", value))


def _elements(step: re.Match[str], items: list[object]) -> Iterator[object]:
    if step["index"] is not None:
        index = int(step["index"])
        if -len(items) <= index < len(items):
            yield items[index]
    elif step["start"] is not None:
        first, last = (int(step[each]) if step[each] else None for each in ("start", "stop"))
        yield from items[first:last]


def _members(value: object) -> Sequence[object]:
    if isinstance(value, Mapping):
        return [*cast("Mapping[str, object]", value).values()]
    return cast("list[object]", value) if isinstance(value, list) else []


def _below(value: object) -> Iterator[object]:
    yield value
    for each in _members(value):
        yield from _below(each)


def _holds(step: re.Match[str], value: object) -> bool:
    """Return whether the condition of a filter holds for a value."""
    values = find_values(step["inner"], value)
    if step["sign"] is None:
        return bool(values)
    text = step["value"]
    wanted: object
    if text[0] in "'\"":
        wanted = text[1:-1]
    else:
        try:
            wanted = json.loads(text)
        except ValueError:
            raise Misused(f"{text} is no value: a text stands in quotes") from None
    try:
        return any(_SIGNS[step["sign"]](each, wanted) for each in values)
    except TypeError:  # a text is compared with a number
        return False
