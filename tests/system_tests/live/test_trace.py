from io import StringIO

import pytest
from rich.console import Console

from system_tests.live.group import GroupView
from system_tests.live.screen import TerminalScreen
from system_tests.trace import LEGEND, Symbol, TraceLine, draw_lanes, format_header, format_line


def test_legend_explains_every_symbol_once():
    assert sorted(entry.strip()[0] for entry in LEGEND.split("   ")) == sorted(
        s.value for s in Symbol
    )


def test_symbols_stand_under_the_first_letter_of_their_member():
    members = ("a", "long", "c")
    line = TraceLine(
        at_ms=13686, generation=3, lanes=(Symbol.LEADS, Symbol.STARTS, Symbol.DOWN), text="x"
    )
    header, text = format_header(members), format_line(line, members=members)
    for member, symbol in zip(members, line.lanes, strict=True):
        assert text[header.index(f" {member} ") + 1] == symbol.value
    assert text.index("x") == header.index("event")


def test_a_line_without_a_generation_keeps_its_columns():
    with_generation = TraceLine(at_ms=1, generation=12, lanes=(Symbol.IDLES,), text="x")
    without = TraceLine(at_ms=1, generation=None, lanes=(Symbol.IDLES,), text="x")
    assert format_line(without, members="a") == format_line(with_generation, members="a").replace(
        "12", "  "
    )


def test_acting_members_are_drawn_over_those_that_are_down():
    lanes = draw_lanes("abc", acting={"b": Symbol.STOPS}, down={"b", "c"})
    assert "".join(lanes) == ".!#"


def test_a_line_with_too_few_lanes_is_refused():
    line = TraceLine(at_ms=1, generation=None, lanes=(Symbol.IDLES,), text="x")
    with pytest.raises(ValueError, match="shorter"):
        format_line(line, members="ab")


FORGED = "x\x1b]0;owned\x07\u202e\n   9999    9   *  *   all is lost"


def test_a_line_of_the_trace_is_one_line_whatever_its_text():
    line = TraceLine(at_ms=13, generation=2, lanes=(Symbol.IDLES,), text=FORGED)
    assert format_line(line, members=["a"]).isprintable()


def test_the_table_on_a_terminal_shows_names_as_they_are():
    view = GroupView.of(["[red]a[/foo]"])
    console = Console(width=200, file=StringIO(), force_terminal=True, color_system=None)
    screen = TerminalScreen(console, ["[red]a[/foo]"], title=FORGED)
    screen.refresh(view)
    console.print(screen._table())
    console.print(
        screen._text(TraceLine(at_ms=1, generation=1, lanes=(Symbol.IDLES,), text=FORGED))
    )
    text = console.file.getvalue()
    assert "[red]a[/foo]" in text
    assert "\x1b]0" not in text
    assert not any(line.startswith("   9999") for line in text.split("\n"))
