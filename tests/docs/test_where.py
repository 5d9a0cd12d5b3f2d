"""docs/where.md: every file exists and defines the name of its row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs/where.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| what", "| ---"))
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_files_exist_and_define_the_name(row):
    _, files, *name = row
    paths = re.findall(r"`([^`]+)`", files)
    assert paths
    texts = [(ROOT / path).read_text(encoding="utf-8") for path in paths]
    for wanted in re.findall(r"`(\w+)`", "".join(name)):
        defined = re.compile(rf"^\s*(?:(?:async )?def |class )?{wanted}\b[(:\s=]", re.MULTILINE)
        assert any(defined.search(text) for text in texts), wanted
