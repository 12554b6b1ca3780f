"""Words of the product: no first line of a docstring and no local name that says nothing.

A docstring begins with the software's own verb (drop, record, assign), not with one of speech and
sight. A participle is no name for a value that lives longer than a few lines.
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]

FIRST_LINE = re.compile(r"(Take|Have|Let|See|What)\b|Return what\b.*\bthat\b")
"""How no docstring begins."""

PARTICIPLES = {"told", "found", "given", "made", "known", "said", "seen", "asked"}
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


def bad_first_lines(tree: ast.Module) -> Iterator[str]:
    """Yield the first lines of docstrings that begin with a word that says nothing."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            first = text.splitlines()[0]
            if FIRST_LINE.match(first) and first not in HELP:
                yield first


def long_participles(tree: ast.Module) -> Iterator[str]:
    """Yield each function's participles that are names for more than a few lines."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            lines: dict[str, list[int]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id in PARTICIPLES:
                    lines.setdefault(node.id, []).append(node.lineno)
                elif isinstance(node, ast.arg) and node.arg in PARTICIPLES:
                    lines.setdefault(node.arg, []).append(node.lineno)
            for name, at in lines.items():
                if max(at) - min(at) > MOST_LINES:
                    yield f"{function.name}: {name}"


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse(path.read_text())


@pytest.mark.parametrize("of", [bad_first_lines, long_participles])
def test_the_product_uses_no_word_that_says_nothing(
    of: Callable[[ast.Module], Iterator[str]],
) -> None:
    wrong = [f"{path.relative_to(HOUSE)}: {each}" for path in FILES for each in of(parsed(path))]
    assert wrong == []
