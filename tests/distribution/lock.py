"""Write the lock files: `python -m tests.distribution.lock PYTHON ...`, one per version.

- `requirements.lock`: every extra but `quix`, within `constraints.txt`, for `make venv`.
- `requirements-quix.lock`: all of `constraints-quix.txt`, for `make test-quix`.

The pip of each interpreter reports what it would install; versions and SHA-256 of the archives are
written, nothing is installed. pip uses its configured index, which is not written to the files. Run
it on Linux x86-64 after a file of constraints changed.
"""

import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Quix Streams needs an older confluent-kafka than all other tests: `make test-quix` has its own.
NOT_LOCKED = {"quix"}
HEAD = """\
# Every package of `make {}` with the SHA-256 of its archives: Linux x86-64 (glibc), CPython {}.
# Made by `python -m tests.distribution.lock`; install with `pip install --require-hashes -r`.
"""


def main_requirements() -> list[str]:
    """Return pip's arguments for what `requirements.lock` holds."""
    extras = ",".join(sorted(_project()["optional-dependencies"].keys() - NOT_LOCKED))
    return ["--constraint", str(ROOT / "constraints.txt"), f"{ROOT}[{extras}]"]


def quix_requirements() -> list[str]:
    """Return pip's arguments for what `requirements-quix.lock` holds."""
    return ["--requirement", str(ROOT / "constraints-quix.txt")]


def report(python: str, requirements: Sequence[str]) -> tuple[str, list[dict[str, Any]]]:
    """Return an interpreter's version, such as `3.11`, and what its pip would install."""
    command = [
        *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--dry-run", "--ignore-installed", "--report", "-", *requirements),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    report = json.loads(done.stdout)
    return report["environment"]["python_version"], report["install"]


def lock_text(target: str, reports: Iterable[tuple[str, list[dict[str, Any]]]]) -> str:
    """Return the lock file of these reports, for a target of the Makefile.

    Raises:
        ValueError: two interpreters would install different versions of a package.
    """
    hashes: dict[tuple[str, str], set[str]] = defaultdict(set)
    pythons: dict[tuple[str, str], set[str]] = defaultdict(set)
    every: set[str] = set()
    for python, rows in reports:
        every.add(python)
        for row in rows:
            if "archive_info" not in row["download_info"]:
                continue  # the project itself
            package = (row["metadata"]["name"].lower(), row["metadata"]["version"])
            hashes[package].add(row["download_info"]["archive_info"]["hashes"]["sha256"])
            pythons[package].add(python)
    names = [name for name, _ in hashes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)}: pin one version in the constraints")
    lines = [HEAD.format(target, ", ".join(sorted(every)))]
    for package, found in sorted(hashes.items()):
        only = sorted(pythons[package])
        marks = " or ".join(f'python_version == "{python}"' for python in only)
        mark = "" if set(only) == every else f" ; {marks}"
        rows = "".join(f" \\\n    --hash=sha256:{digest}" for digest in sorted(found))
        lines.append(f"{'=='.join(package)}{mark}{rows}\n")
    return "".join(lines)


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def main(pythons: Sequence[str]) -> None:
    """Write the files."""
    for name, target, requirements in (
        ("requirements.lock", "venv", main_requirements()),
        ("requirements-quix.lock", "test-quix", quix_requirements()),
    ):
        text = lock_text(target, [report(python, requirements) for python in pythons])
        (ROOT / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
