"""The syntax of the program's files, for tests that look at all of them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file, which is read once in a process."""
    return ast.parse(path.read_text())


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below a node, and what else has some; no expressions, which are many."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from statements(node)
