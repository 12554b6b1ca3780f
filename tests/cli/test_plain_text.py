"""Text for no terminal looks as that for a wide one."""

import re

import pytest

from fairlead.runtime.interfaces.cli.output.printing import FactList, Section, Table, show_sections

SECTIONS: list[list[Section]] = [
    [Table(("A", "LONGER"), [("1", "x"), ("22", "")], title="Titled")],
    [Table(("A",), [], "no rows"), Table(("B",), [("[red]x[/red]",), ("\x1b[31m",)])],
    [
        Table(
            ("NAME", "B"), [("日本", "wide"), ("e\u0301", "combined"), ("ascii", "")], brief=("B",)
        )
    ],
    [FactList((("Name", "value"), ("Longer name", "two\nlines"), ("Empty", ""), ("T", "a\tb")))],
    [FactList((("Long", "word " * 40 + "x" * 150),)), FactList((), "Nothing")],
]


@pytest.mark.parametrize("sections", SECTIONS)
def test_plain_text_is_what_a_terminal_of_100_columns_shows(
    sections: list[Section], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    show_sections(sections)
    plain = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    show_sections(sections)
    styled = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert plain == "".join(f"{line.rstrip()}\n" for line in styled.splitlines())
