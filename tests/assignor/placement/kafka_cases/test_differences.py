import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.assignor.placement.kafka_cases.differences import (
    LISTED,
    REASONS,
    counted,
    section,
)

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[3]
PAGE = ROOT / "docs" / "measurements" / "kafka-assignor-tests.md"
NAME = re.compile(r"\[(\w+Test\.\w+(?:\[[\w, ]+\])?)")


def collected():
    """Return the names of all cases, by which pytest collects them, with their strategies."""
    lines = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", FOLDER],
        cwd=ROOT,
        env=os.environ | {"NIGHTLY": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [found[1] for line in lines if (found := NAME.search(line))]


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_the_cases_are_as_many_as_the_page_says_and_listed_ones_exist():
    names = collected()
    by_class = Counter(name.partition(".")[0] for name in set(names))
    assert sum(by_class.values()) >= 300
    assert min(by_class.values()) >= 1
    assert len(by_class) >= 9
    cases = set(names) | {re.sub(r",?\d+\]$", "]", name) for name in names}
    assert sorted(set(LISTED) - cases) == []
    seeded = {re.sub(r",?\d+\]$", "]", name) for name in names if name[-2:-1].isdigit()}
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    sentence = counted(set(names) - (seeded & LISTED.keys()))
    assert sentence in text, f"write this: {sentence}"


def test_listed_cases_name_what_does_not_hold():
    assert all(sentences for sentences in LISTED.values())


def test_the_page_lists_the_differences():
    page = PAGE.read_text(encoding="utf-8")
    _, _, text = page.partition("## Where we differ from Kafka's own tests\n")
    assert section() in text.partition("\n## ")[0], f"write this table:\n{section()}"
    named = {name.partition("[")[0] for reason in REASONS for name in reason.differing}
    assert all(f"`{name}`" in text for name in named)
