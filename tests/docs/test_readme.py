"""The README's blocks run, and print what they show."""

import pytest

from tests.docs.pages import ROOT, blocks

README = ROOT / "README.md"
LONG = [block for block in blocks(README) if block.marked("slow") is not None]


@pytest.mark.timeout(900)
def test_the_blocks_run_in_order_and_print_what_they_show(session):
    for block in blocks(README):
        if block not in LONG:
            session.run(block)
    session.run_python("README.md")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", LONG, ids=str)
def test_long_blocks_run(block, session):
    session.run(block)


def test_there_are_blocks():
    assert {block.kind for block in blocks(README)} >= {"console", "python"}
    assert LONG
