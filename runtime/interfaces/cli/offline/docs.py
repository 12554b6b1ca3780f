"""The command `docs`: the pages of `docs/`, which are installed with the program.

A page is its Markdown, for programs; a terminal gets it laid out, in a pager.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Annotated, Final

import click

from .....actors.misspelling import hint
from ..adapters.parameters import Argument
from ..output.printing import Misused, Table, show_sections

ROOT: Final = Path(__file__).parents[4] / "docs"
FIRST: Final = ("start", "concepts")
"""The pages to read first, in this order."""
LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def docs(
    page: Annotated[
        str | None,
        Argument(
            metavar="[PAGE]",
            help="Its name, such as stores/kafka, or the last part of it. Default: the list.",
            complete=lambda _, word: [each for each in page_names() if each.startswith(word)],
        ),
    ] = None,
) -> None:
    """Show a page of the documentation in the terminal, or the list of all pages."""
    if page is None:
        rows = [(name, purpose_of(read_page(name))) for name in page_names()]
        show_sections([Table(("PAGE", "WHAT IT HAS"), rows, rigid=True)])
        return
    name = find_page(page)
    if sys.stdout.isatty():
        click.echo_via_pager(_laid_out(without_links(read_page(name), name)))
    else:
        sys.stdout.write(read_page(name))


def page_names() -> list[str]:
    """Return the names of all pages: the introductory ones first, then by folder."""
    names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.md")]
    return sorted(
        names, key=lambda each: (each not in FIRST, each.count("/"), each != FIRST[0], each)
    )


def find_page(word: str) -> str:
    """Return the page with this name, or with this last part; raises `Misused`."""
    names = page_names()
    wanted = word.removeprefix("docs/").removesuffix(".md")
    ends = [each for each in names if each.rpartition("/")[2] == wanted]
    if wanted in names:
        return wanted
    if len(ends) == 1:
        return ends[0]
    near = hint(wanted, [*names, *(each.rpartition("/")[2] for each in names)])
    advice = f"one of {', '.join(ends)}" if ends else near or "`fairlead docs` lists all pages"
    raise Misused(f"there is no page {word!r}: {advice}")


def read_page(name: str) -> str:
    """Return the Markdown of a page."""
    return (ROOT / f"{name}.md").read_text(encoding="utf-8")


def purpose_of(text: str) -> str:
    """Return a page's first paragraph below the title, which is its summary."""
    return " ".join(LINK.sub(r"\1", text.split("\n\n")[1]).split())


def without_links(text: str, name: str) -> str:
    """Name a page behind the words that link to it: a terminal follows no path."""

    def named(link: re.Match[str]) -> str:
        label, target = link[1], link[2].partition("#")[0]
        if not target or "://" in target:
            return label if not target else f"{label} ({target})"
        place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), target))
        place = place.removeprefix("docs/").removesuffix(".md") if place[:5] == "docs/" else place
        return f"{label} ({place})"

    return LINK.sub(named, text)


def _laid_out(text: str) -> str:
    from rich.console import Console  # noqa: PLC0415  # the list needs none
    from rich.markdown import Markdown  # noqa: PLC0415

    console = Console(file=sys.stdout)
    with console.capture() as capture:
        console.print(Markdown(text))
    return capture.get()
