"""Verbs as functions: what `--help` says of their parameters, and what they are called with."""

from enum import Enum
from typing import Annotated, Any

from cli.conftest import Run
from click.testing import CliRunner

from fairlead.runtime.interfaces.cli.adapters.parameters import Argument, Option, make_command


class Speed(Enum):
    """How quick."""

    SLOW = "slow"
    QUICK = "quick"


SAID = list[dict[str, Any]]()
HELP = """\
Usage: verb [OPTIONS] [NAME]...

  Do it.

Arguments:
  [NAME]...  Whose.

Options:
  --count N             How many.  [default: 3; x>=1]
  --speed [slow|quick]  How quick.  [default: slow]
  -w, --word TEXT       A word.
  --place TEXT          Where.
  --at-once             Without waiting.
  --only TEXT           Some.
  -h, --help            Show this message and exit.
"""


def verb(
    names: Annotated[list[str] | None, Argument(metavar="[NAME]...", help="Whose.")] = None,
    *,
    count: Annotated[int, Option("--count", metavar="N", min=1, help="How many.")] = 3,
    speed: Annotated[Speed, Option(help="How quick.")] = Speed.SLOW,
    word: Annotated[str, Option("-w", "--word", help="A word.", show_default=False)] = "x",
    place: Annotated[str, Option(help="Where.")] = "",
    at_once: Annotated[bool, Option(help="Without waiting.")] = False,
    only: Annotated[list[str] | None, Option(help="Some.")] = None,
) -> None:
    """Do it."""
    SAID.append({**locals()})


def called(*words: str) -> dict[str, Any]:
    SAID.clear()
    ended = CliRunner().invoke(make_command("verb", verb), words)
    assert (ended.exit_code, ended.output) == (0, "")
    return SAID[0]


def test_help_tells_the_default_of_an_option_unless_it_is_none_or_not_to_be_shown() -> None:
    assert CliRunner().invoke(make_command("verb", verb), ["--help"]).output == HELP


def test_a_verb_is_called_with_its_defaults_or_with_what_was_given() -> None:
    rest = {"count": 3, "speed": Speed.SLOW, "word": "x", "place": "", "at_once": False}
    assert called() == {"names": None, **rest, "only": None}
    assert called("a", "--at-once", "--only", "b", "--speed=quick", "c", "--only", "d") == {
        "names": ["a", "c"],
        **rest,
        "speed": Speed.QUICK,
        "at_once": True,
        "only": ["b", "d"],
    }


def test_what_says_which_node_is_meant_comes_last_in_the_help(run: Run) -> None:
    lines = run("pause", "--help").out.splitlines()
    heads = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert heads == ["Arguments:", "Options:", "Which node or cluster:", "Examples:"]
    at = {line.split()[0].rstrip(","): number for number, line in enumerate(lines) if "--" in line}
    assert at["-e"] < lines.index("Which node or cluster:") < at["--url"]
    assert "Which node" not in run("config", "set-context", "--help").out
