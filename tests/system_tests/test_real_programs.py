"""The programs of the real world are started by name, so nothing may have loaded them before."""

import subprocess
import sys
from pathlib import Path

import pytest

from system_tests.real import RealCodec
from system_tests.surroundings import SurroundingsError

pytestmark = pytest.mark.timeout(180)
FOLDER = Path(__file__).resolve().parent.parent.parent / "system_tests" / "real"
PROGRAMS = {p.stem for p in FOLDER.glob("*.py") if '__name__ == "__main__"' in p.read_text()}


def test_the_package_loads_none_of_the_programs_that_are_run_from_it():
    assert {"native_member", "jvm_member"} <= PROGRAMS
    done = subprocess.run(
        [sys.executable, "-c", "import sys, system_tests.real; print(*sys.modules)"],
        cwd=FOLDER.parent.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=150,
    )
    assert {f"system_tests.real.{name}" for name in PROGRAMS}.isdisjoint(done.stdout.split())


def test_a_jvm_child_that_ends_is_told_with_its_release():
    with RealCodec("0.1") as codec, pytest.raises(SurroundingsError, match=r"release 0\.1 ended"):
        codec.through("subscription", b"")
