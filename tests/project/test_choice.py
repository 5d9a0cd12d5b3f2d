"""The choice of tests of changed files."""

import os
import subprocess
from functools import partial

import grimp
import pytest
from click.testing import CliRunner

from tests.project import changed

SCENARIO = "system_tests/scenarios/test_matrix.py"
ROOT = changed.ROOT


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph(*changed.PACKAGES, cache_dir=None)


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


def test_every_sub_package_that_has_tests_is_found_by_its_name(graph):
    units = {changed.unit_of(module) for module in graph.modules if module.count(".") > 0}
    named = {unit for unit in units if changed.tests_of(unit)}
    assert len(named) > len(units) / 2


def test_groups_of_tests_reach_the_scheduler(request):
    # pytest 9.2 ignores the names that xdist 3.8 gives to tests of a group.
    if os.environ.get("PYTEST_XDIST_WORKER") and request.config.getoption("loadgroup"):
        assert request.node.nodeid.endswith("@tests/project/test_choice.py")
