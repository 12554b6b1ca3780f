"""Words of the product: no first line of a docstring and no local name that says nothing.

A docstring begins with the software's own verb (drop, record, assign), not with one of speech and
sight. A participle is no name for a value that lives longer than a few lines.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fairlead_tests.syntax import parsed, statements

pytestmark = pytest.mark.xdist_group("house")  # all is read once, in one process of the run

HOUSE = Path(__file__).parents[1]

FIRST_LINE = re.compile(r"(Take|Have|Let|See|What)\b|Return what\b.*\bthat\b")
"""How no docstring begins."""

PARTICIPLES = {"told", "found", "given", "made", "known", "said", "seen", "asked"}
PARTICIPLE = re.compile(rf"\b(?:{'|'.join(sorted(PARTICIPLES))})\b")
MOST_LINES = 5
"""So many lines after its first one a value may still be called by a participle."""

ROOMS = ("events", "actors", "projections", "runtime")

HELP = {
    "Have Spark start a third sooner from now on, by an archive of its classes (180 MB).",
    "Let a worker get work again: ends a cordon or a drain.",
}
"""What `--help` says of verbs is in their docstrings: users read it as they know it."""

FILES = [path for room in ROOMS for path in sorted(HOUSE.glob(f"{room}/**/*.py"))]

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def bad_first_lines(path: Path) -> Iterator[str]:
    """Yield the first lines of docstrings that begin with a word that says nothing."""
    tree = parsed(path)
    for node in (tree, *statements(tree)):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            first = text.splitlines()[0]
            if FIRST_LINE.match(first) and first not in HELP:
                yield first


def long_participles(path: Path) -> Iterator[str]:
    """Yield each function's participles that are names for more than a few lines."""
    lines = [{*PARTICIPLE.findall(line)} for line in path.read_text().splitlines()]
    for function in statements(parsed(path)):
        if isinstance(function, FUNCTIONS) and may_be_long(lines, function):
            for name, at in named(function).items():
                if max(at) - min(at) > MOST_LINES:
                    yield f"{function.name}: {name}"


def may_be_long(lines: Sequence[set[str]], function: Function) -> bool:
    """Tell whether lines of a function that are so far from each other have a participle in common.

    Those of few do; to look at the expressions of all functions takes seconds.
    """
    first = min(each.lineno for each in (function, *function.decorator_list))
    has: dict[str, list[int]] = {}
    for number, words in enumerate(lines[first - 1 : function.end_lineno]):
        for word in words:
            has.setdefault(word, []).append(number)
    return any(at[-1] - at[0] > MOST_LINES for at in has.values())


def named(function: Function) -> dict[str, list[int]]:
    """Return the lines of a function in which each participle is a name."""
    lines: dict[str, list[int]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in PARTICIPLES:
            lines.setdefault(node.id, []).append(node.lineno)
        elif isinstance(node, ast.arg) and node.arg in PARTICIPLES:
            lines.setdefault(node.arg, []).append(node.lineno)
    return lines


@pytest.mark.parametrize("of", [bad_first_lines, long_participles])
def test_the_product_uses_no_word_that_says_nothing(
    of: Callable[[Path], Iterator[str]],
) -> None:
    wrong = [f"{path.relative_to(HOUSE)}: {each}" for path in FILES for each in of(path)]
    assert wrong == []
