"""The checks of pages can fail: shown lines, exit status, Python (`tests/docs/pages.py`)."""

import pytest

from tests.docs.page_session import PageSession
from tests.docs.pages import Block, agrees


@pytest.mark.parametrize(
    ("printed", "shown", "shape", "agree"),
    [
        ("a b  \n\n", "a b", False, True),
        ("a b\nc\n", "a b", False, False),
        ("a b\nc\nd\n", "a ...\n...\nd", False, True),
        ("a b\n", "a c ...", False, False),
        ("took 12 ms\n", "took 7 ms", True, True),
        ("took 12 ms\n", "took 7 s", True, False),
        ("took 12 ms\n", "took 7 ms", False, False),
    ],
)
def test_shown_lines_stand_for_printed_ones(printed, shown, shape, agree):
    assert agrees(printed, shown, shape=shape) is agree


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("kind", "body", "marks"),
    [
        ("console", "$ echo two\none\n", ()),
        ("console", "$ exit 3\n", ()),
        ("console", "$ echo a\na\nb\n", ("exact",)),
        ("console", "$ echo other\nready\n", ("background",)),
        ("python", "assert 1 == 2\n", ()),
    ],
)
def test_a_wrong_block_fails(tmp_path, kind, body, marks):
    def run(session):
        session.run(Block(page="page.md", line=1, kind=kind, marks=marks, body=body))
        session.run_python("page.md")

    with PageSession(tmp_path) as session, pytest.raises(AssertionError):
        run(session)
