"""A saved live group as the start of a plan: what it says, and what it cannot know."""

import json

import pytest
from click.testing import CliRunner

from assignor.inspection.group import inspect_group
from assignor.inspection.saved_problem import problem_of
from system_tests.cli.main import main
from tests.assignor.inspection.described_groups import captured


@pytest.fixture
def saved(tmp_path):
    def save(name, **changes):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(problem_of(inspect_group(*captured(name))) | changes))
        return file

    return save


def plan(*words):
    return CliRunner().invoke(main, ["plan", *map(str, words), "--format", "json"])


def test_members_partitions_and_release_come_from_the_file(saved):
    made = json.loads(plan("--problem", saved("natives"), "--to", "next").output)
    asked = json.loads(
        plan("--from", "native", "--to", "next", "--members", 3, "--partitions", 4).output
    )
    assert made == asked
    assert made["from"] == "native"


def test_options_win_over_the_file(saved):
    file = saved("natives")
    made = plan("--problem", file, "--to", "next", "--members", 5, "--partitions", 2).output
    assert (
        made == plan("--from", "native", "--to", "next", "--members", 5, "--partitions", 2).output
    )


def test_where_several_releases_fit_one_has_to_be_said(saved):
    file = saved("two-3.9.1")
    done = plan("--problem", file, "--to", "4.1")
    assert done.exit_code == 2
    assert "members of the saved group are of 3.4.0 to 4.3.1; say with --from" in done.stderr
    assert json.loads(plan("--problem", file, "--from", "3.9.1", "--to", "4.1").output)["rolling"]


def test_a_release_that_members_do_not_run_is_refused(saved):
    done = plan("--problem", saved("two-3.9.1"), "--from", "2.3.1", "--to", "4.1")
    assert done.exit_code == 2
    assert "jvm0, jvm1 of the saved group wrote what 2.3.1 does not write" in done.stderr
    assert "but 3.4.0 to 4.3.1" in done.stderr


def test_a_group_of_several_programs_is_said_to_be_one(saved):
    done = plan("--problem", saved("old-2.3.1"), "--to", "4.1")
    assert done.exit_code == 2
    assert "members of the saved group differ: " in done.stderr
    assert "2.1.0 to 2.3.1" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        ("{", "broken JSON"),
        ("{}\n{}\n", "the file holds 2 problems; give one"),
        (json.dumps({"name": "g", "clients": {"c": {}}}), "was it saved by assignor inspect?"),
        (json.dumps({"name": "g", "clients": {}}), "no clients"),
    ],
)
def test_files_that_are_none_are_refused(tmp_path, content, said):
    file = tmp_path / "group.json"
    if content is not None:
        file.write_text(content)
    done = plan("--problem", file, "--to", "4.1")
    assert done.exit_code == 2
    assert said in done.stderr


def test_without_a_file_the_release_has_to_be_given():
    done = plan("--to", "4.1")
    assert done.exit_code == 2
    assert "--from RELEASE, or --problem FILE" in done.stderr
