"""Each verb has examples in its `--help`, and each example is a command line of that verb."""

import shlex
from collections.abc import Iterator

import click
import pytest
from cli.conftest import Run

from fairlead.runtime.interfaces.cli.catalogue import VERBS
from fairlead.runtime.interfaces.cli.main import load_verb
from fairlead.runtime.interfaces.cli.output.examples import EXAMPLES


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each verb, and those below it."""
    left = [(name, load_verb(name)) for name in VERBS]
    while left:
        name, command = left.pop(0)
        yield name, command
        if isinstance(command, click.Group):
            left += [(f"{name} {each}", below) for each, below in command.commands.items()]


COMMANDS = dict(all_commands())


def test_each_verb_has_examples_and_no_other_has() -> None:
    assert {*COMMANDS} == {*EXAMPLES}


@pytest.mark.parametrize("verb", EXAMPLES)
def test_an_example_is_a_command_line_of_its_verb(verb: str) -> None:
    for line in EXAMPLES[verb]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|>")
        lexer.whitespace_split, lexer.commenters = True, ""
        words = [*lexer]
        words = words[: words.index(">")] if ">" in words else words
        assert words[: len(verb.split())] == verb.split()
        command = load_verb(words.pop(0))
        while isinstance(command, click.Group) and words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        assert command is not None
        with command.make_context(verb, words):
            pass


def test_examples_are_the_end_of_the_help(run: Run) -> None:
    lines = run("rollout", "undo", "--help").out.splitlines()
    assert lines[-3:] == [
        "Examples:",
        "  fairlead rollout undo flights --dry-run",
        "  fairlead rollout undo flights --to-revision 12 --wait",
    ]
    assert "  fairlead rollout history flights\n" in run("rollout", "--help").out
    assert max(len(f"  fairlead {line}") for each in EXAMPLES.values() for line in each) <= 100
