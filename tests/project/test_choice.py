"""Which tests `make check` chooses, and what only `make nightly` runs (`tests.project.changed`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests import nightly
from tests.project import changed
from tests.project.checkout import ROOT, files

# Helpers of tests that conftest.py loads, by an import or as plugins.
LOADED = [f"tests/{name}.py" for name in ("ledger", "leftovers", "lanes", "nightly")]


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(*changed.PACKAGES, cache_dir=None)


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("assignor/stores/disk.py", {"tests/assignor/stores", "tests/assignor/embedding"}),
        ("probing/leader/decide.py", {"tests/probing/leader", "tests/probing/groups"}),
        ("spark_assign/huge/job.py", {"tests/spark_assign/huge", "tests/spark_assign/cluster"}),
        ("system_tests/cli/soak.py", {"tests/system_tests/cli", "tests/cli", "tests/planted"}),
        ("system_tests/support/jvm/codec.py", {"tests/system_tests", "system_tests/scenarios"}),
        ("tests/probing/rebootstrap/well_formed.py", {"tests/probing/groups"}),
        ("tests/system_tests/matrix/upgrades.json", {"tests/system_tests/matrix"}),
        ("docs/generators/wire.py", {"tests/docs", "tests/cli", "tests/encoding"}),
        ("docs/levels.md", {"tests/docs"}),
        ("fuzz/inspected_groups.py", {"tests/fuzz", "tests/assignor/cli/test_hostile_groups.py"}),
        ("tests/docs/page_session.py", {"tests/docs"}),
        ("requirements.lock", {"tests", "system_tests/scenarios"}),
        *((file, {"tests", "system_tests/scenarios"}) for file in LOADED),
    ],
)
def test_a_changed_file_has_its_tests_and_few_others(graph, file, tests):
    assert (changed.ROOT / file).exists()
    found = set(changed.chosen([file], graph))
    assert tests <= found
    assert "tests/spark_assign/tables" not in found


PRINT = """
import json, pathlib, sys
from tests.project import changed
print(json.dumps(changed.changed_files(pathlib.Path(sys.argv[1]))))
"""


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_changes_are_those_since_main_and_a_renamed_file_has_both_names(tmp_path, locale):
    def git(*words):
        name = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    old = os.fsdecode("öld.py".encode())
    (tmp_path / old).write_text("something\n" * 50, encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("checkout", "-q", "-b", "other")
    git("mv", old, "new.py")
    git("commit", "-q", "-m", "second")
    printed = subprocess.run(
        [sys.executable, "-c", PRINT, tmp_path],
        cwd=changed.ROOT,
        env=os.environ | {"PYTHONPATH": str(changed.ROOT)} | locale,
        capture_output=True,
        check=True,
    )
    names = [os.fsencode(name) for name in json.loads(printed.stdout)]
    assert names == [b"new.py", "öld.py".encode()]


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_changed_test_files_with_tests_that_are_not_fast_are_named():
    files = ["tests/project/test_choice.py", "tests/project/test_words.py"]
    assert changed.tests_left(files) == files[:1]


def test_groups_of_tests_reach_the_scheduler(request):
    # pytest 9.2 ignores the names that xdist 3.8 gives to tests of a group.
    if os.environ.get("PYTEST_XDIST_WORKER") and request.config.getoption("loadgroup"):
        assert request.node.nodeid.endswith("@tests/project/test_choice.py")


def test_samples_and_examples_are_the_same_in_each_run_and_all_at_night(monkeypatch):
    monkeypatch.delenv("NIGHTLY", raising=False)
    assert nightly.sample("abcdefg", every=3, reason="r") == ["a", "d", "g"]
    assert nightly.examples(50) == 17
    monkeypatch.setenv("NIGHTLY", "1")
    assert nightly.sample("abcdefg", every=3, reason="r") == list("abcdefg")
    assert nightly.examples(50) == 50
    with pytest.raises(ValueError, match="say why"):
        nightly.sample("abc", every=2, reason="")


def test_the_list_of_what_only_the_night_runs_is_current():
    is_current = nightly.PAGE.read_text(encoding="utf-8") == nightly.page()
    assert is_current, "run python -m tests.nightly"
    users = [path for path in files(".py") if "is_nightly()" in path.read_text(encoding="utf-8")]
    allowed = [Path(__file__), ROOT / "conftest.py", ROOT / "tests/nightly.py"]
    assert sorted(users) == sorted(allowed), "call `sample` or `examples`"
