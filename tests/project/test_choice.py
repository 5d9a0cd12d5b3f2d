"""The choice of tests: those of changed files, and other nightly and rotated ones each day."""

import os
import subprocess
import sys
from functools import partial

import grimp
import pytest
from click.testing import CliRunner

from tests import rotation
from tests.project import changed

SCENARIO = "system_tests/scenarios/test_matrix.py"
ROOT = changed.ROOT


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(*changed.PACKAGES, cache_dir=None)


@pytest.mark.rotated(4)
@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ([], ["tests/project"]),
        (
            ["README.md"],
            [
                "tests/assignor/test_public_names.py",
                "tests/break_rows/test_breaks.py",
                "tests/docs",
                "tests/project",
            ],
        ),
        (
            ["docs/breaks.json", "docs/mutants.json"],
            ["tests/break_rows", "tests/docs", "tests/project", "tests/system_tests/planted"],
        ),
        (["docs/levels.md"], ["tests/docs", "tests/project"]),
        (["tests/cli/test_commands.py"], ["tests/cli/test_commands.py", "tests/project"]),
        (
            ["tests/encoding/native_strategies.py"],
            ["tests/encoding", "tests/fuzz", "tests/project"],
        ),
        (["tests/cli/test_gone.py"], ["tests/project"]),
        (["fuzz/run.py"], ["tests/fuzz", "tests/project"]),
        (["Makefile", "README.md"], ["tests", "system_tests/scenarios"]),
        (["requirements.lock"], ["tests", "system_tests/scenarios"]),
        (["constraints.txt"], ["tests", "system_tests/scenarios"]),
        (["tests/costs.py", SCENARIO], [SCENARIO, "tests"]),
        (["tests/distribution/lock.py"], ["tests/distribution", "tests/project"]),
        (["assignor/py.typed"], ["tests/assignor", "tests/project"]),
        ([".gitignore"], ["tests/project"]),
    ],
)
def test_files_that_are_no_product_have_their_tests(graph, files, tests):
    assert changed.chosen(files, graph) == tests


def test_a_module_of_the_product_runs_its_tests_and_those_of_who_imports_it(graph):
    found = changed.chosen(["assignor/stores/disk.py"], graph)
    assert "tests/assignor/stores" in found
    assert "tests/assignor/embedding" in found
    assert "tests/probing/member" not in found


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("system_tests/support/fork_server.py", {"tests/system_tests", "system_tests/scenarios"}),
        ("system_tests/support/jvm/codec.py", {"tests/system_tests", "system_tests/scenarios"}),
        ("system_tests/real/checksums.txt", {"tests/system_tests/real"}),
        ("tests/encoding/strategies.py", {"tests/encoding", "tests/fuzz"}),
        ("tests/encoding/golden_files.py", {"tests/encoding", "tests/probing/releases"}),
        # Through tests/probing/groups/driver.py.
        ("tests/probing/rebootstrap/well_formed.py", {"tests/probing/groups"}),
        ("docs/generators/wire.py", {"tests/docs", "tests/cli", "tests/encoding"}),
        ("docs/generate.py", {"tests/docs", "tests/cli", "tests/encoding"}),
        ("benchmarks/assign/bounds.py", {"tests/assignor/placement/test_oracles.py"}),
        ("fuzz/inspected_groups.py", {"tests/fuzz", "tests/assignor/cli/test_hostile_groups.py"}),
    ],
)
def test_a_file_runs_the_tests_of_those_that_import_it(graph, file, tests):
    assert (ROOT / file).exists()
    assert tests <= set(changed.chosen([file], graph))


@pytest.fixture
def checkout(tmp_path):
    def git(*words):
        name = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "öld.py").write_text("something\n" * 50)
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return tmp_path, git


def test_a_renamed_file_has_both_names(checkout):
    folder, git = checkout
    git("mv", "öld.py", "new.py")
    (folder / "not known.py").touch()
    assert changed.changed_files(folder) == ["new.py", "not known.py", "öld.py"]
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    git("commit", "-q", "-m", "second")
    assert changed.changed_files(folder) == ["new.py", "not known.py", "öld.py"]


def test_an_error_of_git_ends_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(changed, "changed_files", partial(changed.changed_files, tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    ended = CliRunner().invoke(changed.main, ["--list"])
    assert ended.exit_code == 1
    assert "not a git repository" in ended.output
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = CliRunner().invoke(changed.main, ["--list"])
    assert ended.exit_code == 1
    assert "git does not run" in ended.output


NIGHTLY_PROOF = """
import pytest

@pytest.mark.nightly
@pytest.mark.kip("268-10", "sim")
def test_it(): pass
"""


@pytest.mark.rotated(2)
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")])
def test_a_nightly_proof_of_a_row_is_a_usage_error(tmp_path, options):
    ended = session(tmp_path, *options)
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert ended.stderr.count("ERROR: these prove rows of the ledger") == 1
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.rotated(2)
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_day_that_is_no_number_is_a_usage_error(tmp_path, options):
    ended = session(tmp_path, *options, ROTATION="abc")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ROTATION='abc' is no whole number" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ended.stdout + ended.stderr


class Item:
    """A collected test with its marks, as far as `conftest.of_other_days` looks at it."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, {mark.name: mark.mark for mark in marks}

    def get_closest_marker(self, name):
        return self.marks.get(name)


def test_rotated_tests_take_turns_and_one_of_each_remains(monkeypatch, request):
    (conftest,) = [
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if hasattr(plugin, "of_other_days")
    ]
    alone, pair = pytest.mark.rotated(3), pytest.mark.rotated(2, "pair")
    values = [Item(f"test_a.py::test_values[{value}]", alone) for value in range(7)]
    both = [Item("test_a.py::test_left", pair), Item("test_b.py::test_right", pair)]
    plain = Item("test_a.py::test_plain")
    items = [*values, *both, plain]
    monkeypatch.delenv("NIGHTLY", raising=False)
    days = []
    for day in range(6):
        monkeypatch.setenv("ROTATION", str(day))
        days.append(set(items) - set(conftest.of_other_days(items)))
        assert days[-1] >= {plain}
        assert len(days[-1] & set(values)) in (2, 3)
        assert len(days[-1] & set(both)) == 1
        assert conftest.of_other_days(both[:1]) == [], "a test that is asked for runs"
    assert set.union(*days[:3]) >= set(values)
    assert set.union(*days[:2]) >= set(both)
    assert [conftest.is_in_part(item) for item in (*values[:1], *both, plain)] == [
        False,
        True,
        True,
        False,
    ]
    monkeypatch.setenv("NIGHTLY", "1")
    assert conftest.of_other_days(items) == []


@pytest.mark.parametrize("marks", [("slow",), ("real",), ("real", "slow")])
def test_slow_and_real_tests_that_prove_no_row_take_turns(monkeypatch, request, marks):
    (conftest,) = [
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if hasattr(plugin, "of_other_days")
    ]
    dear = [getattr(pytest.mark, name) for name in marks]
    taking_turns = [Item(f"test_{name}.py::test_it", *dear) for name in "abcdefghijkl"]
    row = Item("test_a.py::test_row", *dear, pytest.mark.kip("268-10", "sim"))
    every_day = Item("test_b.py::test_fault", *dear, pytest.mark.rotated(1))
    monkeypatch.delenv("NIGHTLY", raising=False)
    days = []
    for day in range(6):
        monkeypatch.setenv("ROTATION", str(day))
        left_out = conftest.of_other_days([*taking_turns, row, every_day])
        assert not {row, every_day} & set(left_out)
        days.append(set(taking_turns) - set(left_out))
        assert len(days[-1]) == 2
        assert conftest.of_other_days(taking_turns[:1]) == [], "a test that is asked for runs"
    assert set.union(*days) == set(taking_turns)


def session(folder, *options, **environment):
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (folder / "test_it.py").write_text(NIGHTLY_PROOF)
    outer = ("PYTEST_XDIST", "PYTEST_ADDOPTS", "PYTEST_CURRENT", "ROTATION", "NIGHTLY")
    inherited = {name: v for name, v in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "-c", os.devnull, *options, "."],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_sub_package_that_has_tests_is_found_by_its_name(graph):
    units = {changed.unit_of(module) for module in graph.modules if module.count(".") > 0}
    named = {unit for unit in units if changed.tests_of(unit)}
    assert len(named) > len(units) / 2


def test_ten_days_take_every_part_once(monkeypatch):
    monkeypatch.delenv("NIGHTLY", raising=False)
    values, taken = list(range(37)), []
    names = [f"tests/test_x.py::test_it[{value}]" for value in values]
    by_name = []
    for day in range(rotation.PARTS):
        monkeypatch.setenv("ROTATION", str(day))
        taken += rotation.share(values)
        by_name += [name for name in names if rotation.is_taken(name)]
    assert sorted(taken) == values
    assert sorted(by_name) == sorted(names)


@pytest.mark.parametrize("parts", range(2, 13))
def test_a_test_that_takes_turns_sees_all_of_its_values(monkeypatch, parts):
    monkeypatch.delenv("NIGHTLY", raising=False)
    values = list(range(parts))
    for period in range(2, 13):
        seen = {turn: set() for turn in range(period)}
        for day in range(12 * parts * period):
            monkeypatch.setenv("ROTATION", str(day))
            seen[day % period].update(rotation.share(values, parts=parts))
        assert all(found == set(values) for found in seen.values()), period


@pytest.mark.rotated(3)
@pytest.mark.slow
@pytest.mark.parametrize("given", ["cores", "core sim", ""])
def test_an_unknown_environment_of_the_ledger_is_a_usage_error(tmp_path, given):
    ended = session(tmp_path, f"--ledger={given}")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "unknown environment" in ended.stderr


def test_a_night_takes_everything_and_few_values_are_never_none(monkeypatch):
    monkeypatch.setenv("ROTATION", "1234567")
    monkeypatch.delenv("NIGHTLY", raising=False)
    assert rotation.share(["a"]) == ["a"]
    assert len(rotation.share("abc")) == 1
    assert "ROTATION=1234567" in rotation.describe()
    monkeypatch.setenv("NIGHTLY", "1")
    assert rotation.share("abc") == list("abc")
    assert rotation.is_taken("anything")
    assert rotation.describe() == "nightly, slow and rotated tests: all"


def test_the_day_is_the_same_in_every_process_of_a_run(monkeypatch):
    monkeypatch.delenv("ROTATION", raising=False)
    day = rotation.rotation()
    monkeypatch.setattr(rotation.time, "time", lambda: 0.0)
    assert os.environ["ROTATION"] == str(day)
    assert rotation.rotation() == day


def test_groups_of_tests_reach_the_scheduler(request):
    # pytest 9.2 ignores the names that xdist 3.8 gives to tests of a group.
    if os.environ.get("PYTEST_XDIST_WORKER") and request.config.getoption("loadgroup"):
        assert request.node.nodeid.endswith("@tests/project/test_choice.py")
