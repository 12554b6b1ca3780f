"""Text for no terminal looks as that for a wide one."""

import re

import pytest

from fairlead.runtime.interfaces.cli.output.columns import fit_widths, fold
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


@pytest.mark.parametrize(
    ("table", "columns", "lines"),
    [
        pytest.param(
            Table(("KEY", "VALUE"), [("a.b", "1"), ("a.long.key.of.a.setting", "2")]),
            20,
            ["KEY            VALUE", "a.b            1", "a.long.key.    2", "of.a.setting"],
            id="behind a mark",
        ),
        pytest.param(
            Table(("A", "B"), [("x" * 12, f"{'y ' * 8}y"), ("x" * 12, ""), ("x" * 12, "")]),
            26,
            ["A             B", f"{'x' * 12}  y y y y y y", f"{'':14}y y y", *["x" * 12] * 2],
            id="where it costs the fewest lines",
        ),
        pytest.param(
            Table(("FIRST", "SECOND"), [("x" * 12, "y" * 12)]),
            20,
            [f"FIRST:   {'x' * 11}", f"{'':9}x", f"SECOND:  {'y' * 11}", f"{'':9}y"],
            id="as facts",
        ),
    ],
)
def test_a_table_is_folded_to_the_terminal(
    table: Table,
    columns: int,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    show_sections([table])
    assert capsys.readouterr().out.splitlines() == lines


def test_names_that_take_half_of_a_terminal_have_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    show_sections([FactList((("Key", "a value"), ("A name of some length", "another")))])
    assert capsys.readouterr().out == (
        "Key:        a value\nA name of some length:\n            another\n"
    )


@pytest.mark.parametrize("cell", ["x" * 4_000_000, "é" * 200_000, " " * 1_000])
def test_a_cell_of_megabytes_is_folded_as_any_other(cell: str) -> None:
    assert fit_widths([[cell, "name"]], [10, 4], 60) == [54, 4]
    lines = fold(cell, 54)
    assert "".join(lines) == cell.strip()
    assert {len(each) for each in lines[:-1]} <= {54}
