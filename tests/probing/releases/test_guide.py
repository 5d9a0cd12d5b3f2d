"""The newest release of Kafka is complete; each open step of docs/extending.md is a failure."""

import pytest

from tests.probing.releases.guide import ROOT, STEPS

PAGE = ROOT / "docs/extending.md"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_nothing_of_the_newest_release_is_missing(step):
    assert step() == "", f"{step.__name__}: {step()}"


def test_the_page_names_every_step():
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## A release of Kafka\n")[2].partition("\n## ")[0]
    assert section
    assert [step.__name__ for step in STEPS if f"`{step.__name__}`" not in section] == []
