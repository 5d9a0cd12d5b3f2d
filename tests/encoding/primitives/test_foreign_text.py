import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import shown
from encoding.primitives import shell_word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders-7", "orders-7"),
        ("größe 東京", "größe 東京"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("a\u2028b\u200b", "a\\u2028b\\u200b"),
        ("\ud800", "\\ud800"),
        (7, "7"),
    ],
)
def test_what_is_not_printable_is_escaped(text, expected):
    assert shown(text) == expected


def test_a_long_text_is_cut_and_marked():
    assert shown("x" * 5000) == f"{'x' * 256}... (5,000 characters)"
    assert shown("x" * 5000, limit=None) == "x" * 5000
    assert shown("\n" * 256) == "\\n" * 256


@given(st.text(st.characters(), max_size=600))
def test_one_printable_line_comes_out(text):
    line = shown(text)
    assert line.isprintable()
    assert len(line) <= 256 * len("\\U0010ffff") + 30


@pytest.mark.usefixtures("clock")  # of the shell
def test_a_shell_reads_a_word_as_the_text_that_it_stands_for():
    texts = ["orders", "a b", "it's", "$(reboot)", "", "-h", "größe", "a\\b"]
    odd = ["a\nb", "a'\nb\\", "\x1b[2J7", "a\u202eb", "$HOME\t`ls`", "a\\\nb"]
    words = [shell_word(text) for text in (*texts, *odd)]
    assert all(word.isprintable() for word in words)
    line = f"printf '%s\\0' {' '.join(words)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0") == [*texts, *odd, ""]
    assert len({*words}) == len(words)
