"""Decision tables: the row that decides, and its sentence."""

from dataclasses import dataclass

import pytest

from probing.rules import Rule, always, first, first_or_none


@dataclass(frozen=True)
class Numbers:
    count: int

    @property
    def share(self):
        return 12 // self.count


MANY = Rule(name="many", holds=lambda n: n.count > 2, says="divide", why="{count} get {share} each")
SOME = Rule(name="some", holds=lambda n: n.count > 0, says="give", why="{who} gets {count}")
NONE = Rule(name="none", holds=always, says="keep", why="nobody is there")


def test_the_first_row_that_holds_decides():
    assert [first((MANY, SOME, NONE), Numbers(n)).says for n in (3, 1, 0)] == [
        "divide",
        "give",
        "keep",
    ]


def test_a_table_without_a_row_that_holds_is_an_error_that_names_the_facts():
    with pytest.raises(LookupError, match=r"no row .* holds for Numbers\(count=0\)"):
        first((MANY, SOME), Numbers(0))
    assert first_or_none((MANY, SOME), Numbers(0)) is None


def test_a_sentence_has_attributes_of_the_facts_and_values_beside_them():
    assert MANY.sentence(Numbers(3)) == "3 get 4 each"
    assert SOME.sentence(Numbers(1), who="a") == "a gets 1"
    assert SOME.sentence(Numbers(1), who="a", count="all") == "a gets all"


def test_attributes_that_a_sentence_has_not_are_not_read():
    assert NONE.sentence(Numbers(0)) == "nobody is there"
    with pytest.raises(ZeroDivisionError):
        MANY.sentence(Numbers(0))
    with pytest.raises(AttributeError, match="who"):
        SOME.sentence(Numbers(1))
