"""ARCHITECTURE.md is true: its paths and names exist, and it gives each dependency its reason."""

import re
import tomllib
from pathlib import Path

import pytest

from assignor import ConfigError
from encoding import DecodeError, EncodeError, RebalanceError
from spark_assign.tables.errors import BadTable

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LINES = 200
PACKAGES = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
# Folders of the assignor that talk to a client, a terminal, a disk or a log.
WITH_IO = {
    "adapters",
    "cli",
    "embedding",
    "examples",
    "integrations",
    "levels",
    "observe",
    "stores",
}

SECTIONS = re.split(r"^#{2,3} (.+)$", PAGE, flags=re.MULTILINE)
TEXT_BY_SECTION = {"": SECTIONS[0], **dict(zip(SECTIONS[1::2], SECTIONS[2::2], strict=True))}
MENTIONS = [
    (section, name)
    for section, text in TEXT_BY_SECTION.items()
    for name in re.findall(r"(?<!`)`([^`\n]+)`", text)
]
PATHS = [mention for mention in MENTIONS if re.fullmatch(r"[\w*/]+\.py|[\w/]+/", mention[1])]
NAMES = [
    found[1]
    for _, name in MENTIONS
    if (found := re.fullmatch(r"([A-Z][a-z]\w+|[a-z]+_[a-z_]+)(?:\(.*\))?", name))
]


@pytest.mark.parametrize(("section", "path"), PATHS)
def test_every_path_exists(section, path):
    packages = (section,) if section in PACKAGES else PACKAGES
    places = [ROOT, *(ROOT / package for package in packages)]
    assert any(list(place.glob(path)) for place in places)


def test_every_name_is_defined():
    sources = "\n".join(
        p.read_text(encoding="utf-8")
        for package in PACKAGES
        for p in sorted((ROOT / package).rglob("*.py"))
    )
    defined = set(re.findall(r"^\s*(?:class |(?:async )?def )?(\w+)\b", sources, re.MULTILINE))
    assert [name for name in NAMES if name not in defined | set(PACKAGES)] == []


def test_one_rebalance_is_followed_from_the_join_to_the_tasks():
    [tour] = [t for title, t in TEXT_BY_SECTION.items() if title.startswith("One rebalance")]
    steps = re.split(r"^\d+\. ", tour, flags=re.MULTILINE)[1:]
    assert len(steps) == 10
    assert all(re.search(r"`[\w/]+(?:\.py|/)`", step) for step in steps)


def test_the_page_is_short():
    assert len(PAGE.splitlines()) <= LINES


def test_every_dependency_has_its_reason():
    project = SETTINGS["project"]
    asked = [*SETTINGS["build-system"]["requires"], *project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        asked += extra
    wanted = {re.match(r"[\w-]+", requirement)[0] for requirement in asked}
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|", TEXT_BY_SECTION[SECTIONS[-2]], re.MULTILINE)
    explained = {name for row in rows[2:] for name in re.sub(r"\(.*?\)", "", row).split(", ")}
    assert {name.strip() for name in explained} == wanted


def test_the_assignor_has_no_folder_that_may_do_io_unseen():
    contracts = SETTINGS["tool"]["importlinter"]["contracts"]
    [core] = [
        contract for contract in contracts if contract["name"] == "the assignor's core does no I/O"
    ]
    folders = {path.parent.name for path in (ROOT / "assignor").glob("*/__init__.py")}
    assert {f"assignor.{name}" for name in folders - WITH_IO} == set(core["source_modules"])


@pytest.mark.parametrize("kind", [BadTable, ConfigError, DecodeError, EncodeError])
def test_native_errors_have_one_root(kind):
    assert issubclass(kind, RebalanceError)
