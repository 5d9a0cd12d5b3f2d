import pytest

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
    with_one = TraceLine(at_ms=1, generation=12, lanes=(Symbol.IDLES,), text="x")
    without = TraceLine(at_ms=1, generation=None, lanes=(Symbol.IDLES,), text="x")
    assert format_line(without, members="a") == format_line(with_one, members="a").replace(
        "12", "  "
    )


def test_acting_members_are_drawn_over_those_that_are_down():
    lanes = draw_lanes("abc", acting={"b": Symbol.STOPS}, down={"b", "c"})
    assert "".join(lanes) == ".!#"


def test_a_line_with_too_few_lanes_is_refused():
    line = TraceLine(at_ms=1, generation=None, lanes=(Symbol.IDLES,), text="x")
    with pytest.raises(ValueError, match="shorter"):
        format_line(line, members="ab")
