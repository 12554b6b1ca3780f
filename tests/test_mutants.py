"""The mutations of `make mutants`: small, in functions alone, and the same again for a seed."""

import ast
from pathlib import Path

import pytest

from fairlead_tests.mutants.places import Place, lines_with_checks, places
from fairlead_tests.mutants.trials import around, codes, pairs

HOUSE = Path(__file__).parents[1]
SOURCE = '''
LIMIT = 1 + 2

class Taker:
    """A text."""

    most: int = 3

    def take(self, text: str = "a" + "b", most: int = 4) -> bool:
        """Another text."""
        if most < 1 or self.is_full:
            raise ValueError(f"{most + 1}")
        for each in range(2):
            self.found += each - 1
            self.log(f"{each}", 1)
            self.add(text, keep=True)
            super().take(*zip(text, text, strict=True))
        return any(text) and not "é" in text  # a comment
'''
MUTATIONS = [
    ("most < 1 or self.is_full", "(most < 1 and self.is_full)"),
    ("most < 1", "(most <= 1)"),
    ("1", "2"),
    ('raise ValueError(f"{most + 1}")', "pass"),
    ("2", "3"),
    ("self.found += each - 1", "self.found -= each - 1"),
    ("each - 1", "(each + 1)"),
    ("1", "2"),
    ("self.add(text, keep=True)", "pass"),
    ("True", "False"),
    ("super().take(*zip(text, text, strict=True))", "__class__"),
    ('any(text) and not "é" in text', "(any(text) or not 'é' in text)"),
    ("any(text)", "(all(text))"),
    ('not "é" in text', "('é' in text)"),
    ('"é" in text', "('é' not in text)"),
]


def test_what_is_mutated_is_what_a_function_compares_computes_and_calls() -> None:
    found = [(each.before, each.after) for each in places("a/b.py", SOURCE)]
    assert sorted(found) == sorted(MUTATIONS)


def test_a_mutation_changes_its_own_place_and_nothing_else() -> None:
    for each in places("a/b.py", SOURCE):
        mutated = each.mutated(SOURCE).encode()
        before, after = each.before.encode(), each.after.encode()
        source = SOURCE.encode()
        assert source[each.start : each.end] == before
        assert mutated == source[: each.start] + after + source[each.end :]
        assert ast.unparse(ast.parse(mutated)) != ast.unparse(ast.parse(source))


def test_a_mutation_is_in_the_code_of_one_function_alone() -> None:
    source = (
        f"{SOURCE}\nclass Other:\n    def take(self) -> int:\n        return (lambda: 1 + 2)()\n"
    )
    known = codes(compile(source, "b.py", "exec"))
    assert [name for name, _ in known] == ["Other.take", "Taker.take"]
    for each in places("a/b.py", source):
        name = "Taker.take" if each.line <= len(SOURCE.splitlines()) else "Other.take"
        mutated = codes(compile(each.mutated(source), "b.py", "exec"))
        assert around(known, each.line).co_qualname == name
        assert {it for it in known if known[it] != mutated[it]} == {
            (name, around(known, each.line).co_firstlineno)
        }


def test_functions_within_a_function_are_mutated_with_it() -> None:
    source = "def of(most):\n    def check(x):\n        return x < most\n    return check\n"
    (place,) = places("a/b.py", source)
    old, new = (
        around(codes(compile(each, "b.py", "exec")), 2) for each in (source, place.mutated(source))
    )
    changed = [was.co_name for was, will_be in pairs(old, new) if was != will_be]
    assert changed == ["of", "check"]


def ranked(source: str, seed: int) -> list[tuple[str, int]]:
    some = sorted(places("a/b.py", source), key=lambda each: each.rank(seed))
    return [(each.before, each.nth) for each in some]


def test_a_seed_chooses_the_same_whatever_is_written_elsewhere() -> None:
    assert ranked(SOURCE, 1) == ranked(f"# more\n{SOURCE}\nMORE = 1\n", 1)
    assert ranked(SOURCE, 1) != ranked(SOURCE, 2)
    assert sorted(ranked(SOURCE, 1)) == sorted(ranked(SOURCE, 2))


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("events/log/files.py", "events"),
        ("actors/timing.py", "actors"),
        ("actors/group/decide.py", "actors/group"),
        ("runtime/pipeline/tasks/task.py", "runtime/pipeline"),
    ],
)
def test_a_rate_is_told_of_a_room(path: str, room: str) -> None:
    assert Place(path, 1, 1, 0, 0, "", "", 0).room == room


def test_each_mutation_of_a_module_is_python() -> None:
    path = HOUSE / "actors/group/members/commit.py"
    source = path.read_text()
    for each in places("actors/group/members/commit.py", source):
        compile(each.mutated(source), path, "exec")
        assert each.mutated(source) != source


def test_a_test_checks_where_it_asserts_or_waits_for_an_error() -> None:
    source = """
def test_one() -> None:
    assert (
        1 == 1
    )
    with pytest.raises(ValueError):
        mock.assert_called()
    raise AssertionError
    x = 1
"""
    assert lines_with_checks(source) == {3, 4, 5, 6, 7, 8}
