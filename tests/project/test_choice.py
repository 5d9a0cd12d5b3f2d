"""The choice of tests of changed files."""

import os
import subprocess
from functools import partial

import grimp
import pytest
from click.testing import CliRunner

from tests.project import changed

IMPORTS = (
    ("assignor.embedding.errors", "assignor.stores"),
    ("system_tests.live.hold_back", "assignor.stores.disk"),
    ("probing.member.machine", "probing.leader"),
)


@pytest.fixture(scope="module")
def graph():
    made = grimp.ImportGraph()
    for module in {part for pair in IMPORTS for part in pair} | {"assignor.stores.disk"}:
        made.add_module(module)
    for importer, imported in IMPORTS:
        made.add_import(importer=importer, imported=imported)
    return made


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ([], ["tests/project"]),
        (["docs/levels.md"], ["tests/docs", "tests/project"]),
        (["docs/breaks.json"], ["tests/break_rows", "tests/docs", "tests/project"]),
        (["tests/cli/test_commands.py"], ["tests/cli/test_commands.py", "tests/project"]),
        (["tests/cli/test_gone.py"], ["tests/project"]),
        (
            ["tests/encoding/native_strategies.py"],
            ["tests/encoding", "tests/fuzz", "tests/project"],
        ),
        (["Makefile", "README.md"], ["tests", "system_tests/scenarios"]),
        (
            ["assignor/stores/disk.py"],
            [
                "tests/assignor/embedding",
                "tests/assignor/stores",
                "tests/break_rows",
                "tests/project",
                "tests/system_tests/live",
            ],
        ),
    ],
)
def test_changed_files_have_their_tests_and_those_of_what_imports_them(graph, files, tests):
    assert changed.chosen(files, graph) == tests


@pytest.mark.usefixtures("clock")
def test_a_renamed_file_has_both_names(tmp_path):
    def git(*words):
        name = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "öld.py").write_text("something\n" * 50)
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    git("mv", "öld.py", "new.py")
    git("commit", "-q", "-m", "second")
    (tmp_path / "not known.py").touch()
    assert changed.changed_files(tmp_path) == ["new.py", "not known.py", "öld.py"]


@pytest.mark.usefixtures("clock")
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


def test_groups_of_tests_reach_the_scheduler(request):
    # pytest 9.2 ignores the names that xdist 3.8 gives to tests of a group.
    if os.environ.get("PYTEST_XDIST_WORKER") and request.config.getoption("loadgroup"):
        assert request.node.nodeid.endswith("@tests/project/test_choice.py")
