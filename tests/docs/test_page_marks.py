"""The marks of `tests/docs/pages.py` mean what they say: each check can fail."""

import pytest

from tests.docs.pages import Block, agrees, blocks


@pytest.mark.parametrize(
    ("printed", "shown", "shape", "agree"),
    [
        ("a b  \n\n", "a b", False, True),
        ("a b\nc\n", "a b", False, False),
        ("a b\nc\nd\n", "a ...\n...\nd", False, True),
        ("a b\n", "a c ...", False, False),
        ("1  22 ms\n", "11 2 ms", True, True),
        ("took 12 ms\n", "took 7 s", True, False),
        ("took 12 ms\n", "took 7 ms", False, False),
    ],
)
def test_shown_lines_stand_for_printed_ones(printed, shown, shape, agree):
    assert agrees(printed, shown, shape=shape) is agree


def block(body, *marks, kind="console"):
    return Block(page="page.md", line=1, kind=kind, marks=marks, body=body)


def test_output_exit_status_and_python_that_differ_from_the_page_are_seen(session):
    session.run(block("$ echo one; echo two\none\n"))
    session.run(block("$ exit 3\n", "exit 3"))
    session.run(block("x = 1\n", kind="python"))
    session.run_python("page.md")
    for wrong in (
        block("$ echo two\none\n"),
        block("$ exit 3\n"),
        block("$ echo a\na\nb\n", "exact"),
        block("$ echo other\nready\n", "background"),
    ):
        with pytest.raises(AssertionError, match="ended"):
            session.run(wrong)
    session.run(block("assert x == 2\n", kind="python"))
    with pytest.raises(AssertionError, match="AssertionError"):
        session.run_python("page.md")


def test_marks_and_reasons_are_read_from_the_comment(monkeypatch, tmp_path):
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- shape, exit 1 -->\n```console\n$ a \\\n    b\nout\n```\n\n"
        "<!-- not run: no cluster -->\n```sh\n# what\nc\n```\n\n<!-- stop: a -->\n",
        encoding="utf-8",
    )
    first, second, third = blocks(page)
    assert (first.marks, first.commands) == (("shape", "exit 1"), [("a b", "out")])
    assert (second.why_not, second.commands) == ("no cluster", [("c", "")])
    assert (third.kind, third.body) == ("stop", "a")
