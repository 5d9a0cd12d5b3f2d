"""The lock file: every pinned version with checksums, without a package index."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.distribution.lock import NOT_LOCKED, lock_text

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"([a-z0-9._-]+)==(\S+)( ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_row_of_the_lock_has_the_version_of_the_constraints_and_a_checksum():
    text = (ROOT / "requirements.lock").read_text()
    body = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    rows = ROW.findall(body)
    assert ROW.sub("", body) == ""
    locked = {normal(name): version for name, version, *_ in rows}
    lines = (ROOT / "constraints.txt").read_text().split()
    pinned = {normal(name): version for name, version in (line.split("==") for line in lines)}
    assert {name: pinned.get(name) for name in locked} == locked
    assert "://" not in text


def test_every_dependency_is_locked():
    text = (ROOT / "requirements.lock").read_text()
    locked = {normal(name) for name, *_ in ROW.findall(text)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for rows in (project["dependencies"], *(extras[name] for name in extras.keys() - NOT_LOCKED)):
        assert {normal(re.match(r"[\w.-]+", row)[0]) for row in rows} <= locked


def row(name, version, digest):
    info = {"archive_info": {"hashes": {"sha256": digest}}}
    return {"metadata": {"name": name, "version": version}, "download_info": info}


def test_a_lock_joins_what_interpreters_report():
    project = {"metadata": {"name": "it", "version": "1"}, "download_info": {"dir_info": {}}}
    reports = [
        ("3.11", [row("B", "1", "aa"), row("a", "2", "cc")]),
        ("3.12", [row("B", "1", "bb")]),
    ]
    assert lock_text([(python, [*rows, project]) for python, rows in reports]).splitlines()[2:] == [
        'a==2 ; python_version == "3.11" \\',
        "    --hash=sha256:cc",
        "b==1 \\",
        "    --hash=sha256:aa \\",
        "    --hash=sha256:bb",
    ]
    with pytest.raises(ValueError, match="b: pin one version"):
        lock_text([("3.11", [row("b", "1", "aa")]), ("3.12", [row("b", "2", "bb")])])
