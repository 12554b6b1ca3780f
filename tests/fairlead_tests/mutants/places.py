"""Small mutations of the program: where one can be made, what it changes, and a seeded choice.

A mutation changes one expression or statement inside a function as a slip of the hand would: a
comparison with its neighbour, `and` with `or`, a guard that does not raise, a call that is not
made. Texts, types and what runs only when a module is imported stay as they are.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

ROOMS: Final = ("actors", "events", "projections", "runtime")
"""The folders of the program."""
_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLED = {"any": "all", "all": "any", "min": "max", "max": "min"}
_UNTOLD = ("log", "_log", "warn", "_warn", "debug", "info", "warning", "print")
"""Functions whose calls only tell people something."""


@dataclass(frozen=True, slots=True)
class Place:
    """One mutation: `before` in a file's source, between two offsets in bytes, becomes `after`."""

    path: str
    """Relative to the repository's root."""
    line: int
    statement: int
    """The first line of the statement around it."""
    start: int
    end: int
    before: str
    after: str
    nth: int
    """How many of its file, before it, change the same into the same."""

    def mutated(self, source: str) -> str:
        """Return a file's source with the mutation."""
        packed = source.encode()
        return (packed[: self.start] + self.after.encode() + packed[self.end :]).decode()

    @property
    def room(self) -> str:
        """The folder under which its rate is told."""
        top, second, *_ = self.path.split("/")
        return f"{top}/{second}" if top in {"actors", "runtime"} and "." not in second else top

    @property
    def told(self) -> str:
        """The mutation in one line."""
        before, after = (" ".join(each.split()) for each in (self.before, self.after))
        return f"{self.path}:{self.line}: {before:.80} -> {after:.80}"

    def rank(self, seed: int) -> bytes:
        """Return its position in the order of a seed, which changes elsewhere do not change."""
        told = f"{seed} {self.path} {self.nth} {self.before} {self.after}"
        return blake2b(told.encode()).digest()


def places(path: str, source: str) -> Iterator[Place]:
    """Yield the mutations of a file, in the order of its lines."""
    ends, same = [0], Counter[tuple[str, str]]()
    for line in source.encode().splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    for function in _functions(ast.parse(source)):
        for statement in _statements(function):
            for node, after in _changes(statement):
                start = ends[node.lineno - 1] + node.col_offset
                end = ends[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
                before = source.encode()[start:end].decode()
                nth = same[before, after]
                same[before, after] += 1
                yield Place(path, node.lineno, statement.lineno, start, end, before, after, nth)


def lines_with_checks(source: str) -> set[int]:
    """Return the lines of a file at which a test may fail: assertions, and what must raise."""
    found = set[int]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert() | ast.Raise():
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            case ast.Call(func=ast.Attribute(attr=name)):
                if name in {"raises", "warns", "fail"} or name.startswith("assert_"):
                    found.add(node.lineno)
            case _:
                pass
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of a module and of its classes; those within are part of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, name, ()):
            if isinstance(each, ast.stmt):
                yield each
            yield from _statements(each)


def _changes(statement: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what may be changed of a statement itself, not of those below it."""
    match statement:
        case ast.Raise():
            yield statement, "pass"
            return  # its text is for people
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr(value=ast.Call() as call):
            if _is_told(call):
                return
            # A function keeps its cells, so that it can be given the code of its mutation.
            yield statement, "__class__" if "super()" in ast.unparse(call) else "pass"
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call()):
            yield statement.test, f"(not {ast.unparse(statement.test)})"
        case ast.AugAssign() if type(statement.op) in _COMPUTED:
            made = deepcopy(statement)
            made.op = _COMPUTED[type(statement.op)]()
            yield statement, ast.unparse(made)
        case _:
            pass
    for expression in _expressions(statement):
        yield from _of_expression(expression)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement that are evaluated where it stands."""
    for name, value in ast.iter_fields(statement):
        if name not in {"annotation", "returns", "decorator_list", "type_params", "args"}:
            several: list[object] = value if isinstance(value, list) else [value]
            yield from (each for each in several if isinstance(each, ast.expr | ast.withitem))


def _is_told(call: ast.Call) -> bool:
    named = call.func
    name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
    return name in _UNTOLD or ast.unparse(named).endswith("story.tell")


def _of_expression(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.JoinedStr):
        return  # a text; and Python 3.11 does not know where its expressions are
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # the program checks itself
    if isinstance(node, ast.expr):
        made = _changed(node)
        if made is not None:
            yield (
                node,
                f"({ast.unparse(made)})"
                if not isinstance(made, ast.Constant)
                else (ast.unparse(made)),
            )
    for child in ast.iter_child_nodes(node):
        yield from _of_expression(child)


def _changed(node: ast.expr) -> ast.expr | None:
    """Return an expression as a slip would leave it; None: it is none of those that are changed."""
    made = deepcopy(node)
    match made:
        case ast.Compare(ops=[op]) if type(op) in _COMPARED:
            made.ops = [_COMPARED[type(op)]()]
        case ast.BoolOp():
            made.op = ast.Or() if isinstance(made.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not()):
            return made.operand
        case ast.BinOp() if type(made.op) in _COMPUTED and not _is_text(made):
            made.op = _COMPUTED[type(made.op)]()
        case ast.Call(func=ast.Name(id=name)) if name in _CALLED:
            made.func = ast.Name(_CALLED[name], ast.Load())
        case ast.Constant(value=bool(value)):
            made.value = not value
        case ast.Constant(value=int(value)):
            made.value = value + 1
        case _:
            return None
    return made


def _is_text(node: ast.BinOp) -> bool:
    """Tell whether texts are put together, or types are united."""
    sides = (node.left, node.right)
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str | bytes | None))
        for each in sides
    )
