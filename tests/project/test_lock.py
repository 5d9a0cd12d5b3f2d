"""The lock file: every pinned version with checksums, without a package index."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.distribution.lock import NOT_LOCKED, lock_text

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"([a-z0-9._-]+)==(\S+)( ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


LOCKS = {"requirements.lock": "constraints.txt", "requirements-quix.lock": "constraints-quix.txt"}


def pins(constraints):
    lines = (ROOT / constraints).read_text(encoding="utf-8").split()
    return {normal(name): version for name, version in (line.split("==") for line in lines)}


def locked(lock):
    return {
        normal(name): version
        for name, version, *_ in ROW.findall((ROOT / lock).read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize(("lock", "constraints"), LOCKS.items())
def test_every_row_of_a_lock_has_the_version_of_the_constraints_and_a_checksum(lock, constraints):
    text = (ROOT / lock).read_text(encoding="utf-8")
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    assert ROW.sub("", body) == ""
    pinned = pins(constraints)
    assert {name: pinned.get(name) for name in locked(lock)} == locked(lock)
    assert "://" not in text


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_locked(lock):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = NOT_LOCKED if "quix" in lock else extras.keys() - NOT_LOCKED
    rows = [*project["dependencies"], *(row for name in names for row in extras[name])]
    for needed in map(Requirement, rows):
        version = locked(lock)[normal(needed.name)]
        assert needed.specifier.contains(version), (needed, version)


def test_the_quix_environment_differs_in_one_client_only():
    main, quix = pins("constraints.txt"), pins("constraints-quix.txt")
    both = main.keys() & quix.keys()
    assert {name for name in both if main[name] != quix[name]} == {"confluent-kafka"}


def row(name, version, digest):
    info = {"archive_info": {"hashes": {"sha256": digest}}}
    return {"metadata": {"name": name, "version": version}, "download_info": info}


def test_a_lock_joins_what_interpreters_report():
    project = {"metadata": {"name": "it", "version": "1"}, "download_info": {"dir_info": {}}}
    reports = [
        ("3.11", [row("B", "1", "aa"), row("a", "2", "cc")]),
        ("3.12", [row("B", "1", "bb")]),
    ]
    assert lock_text("venv", [(python, [*rows, project]) for python, rows in reports]).splitlines()[
        2:
    ] == [
        'a==2 ; python_version == "3.11" \\',
        "    --hash=sha256:cc",
        "b==1 \\",
        "    --hash=sha256:aa \\",
        "    --hash=sha256:bb",
    ]
    with pytest.raises(ValueError, match="b: pin one version"):
        lock_text("venv", [("3.11", [row("b", "1", "aa")]), ("3.12", [row("b", "2", "bb")])])
