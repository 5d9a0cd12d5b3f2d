"""`assignor sample`: groups of any size, in the format of problem files."""

import json

import pytest
from click.testing import CliRunner

from assignor import read_problem
from assignor.cli import main, make_problem
from assignor.placement import NOBODY
from assignor.problems import parse_problem


def call(*arguments):
    return CliRunner().invoke(main, ["sample", *map(str, arguments)])


def states(text):
    return [read_problem(parse_problem(line)) for line in text.splitlines()]


def test_groups_are_equal_for_equal_seeds_and_balanced():
    options = {"clients": 7, "tasks": 60, "standbys": 2, "endpoints": True, "racks": 3}
    data = make_problem(**options, subtopologies=4, threads=2, seed=5)
    assert data == make_problem(**options, subtopologies=4, threads=2, seed=5)
    assert data != make_problem(**options, subtopologies=4, threads=2, seed=6)
    clients = data["clients"].values()
    for kind, copies in (("active", 1), ("standby", 2)):
        held = [len(client[kind]) for client in clients]
        assert sum(held) == 60 * copies
        assert max(held) - min(held) <= copies
    assert {len(topic) for topic in data["topics"]} == {63}
    assert {len(client["endpoint"]) - len(":8080") for client in clients} == {30}
    assert not any(set(client["active"]) & set(client["standby"]) for client in clients)
    assert len(data["subtopologies"]) == 4


def test_ranges_are_run_through_group_by_group(tmp_path):
    path = tmp_path / "groups.jsonl"
    options = ("--groups", 11, "--clients", "3-5", "--tasks", "12-15", "--seed", 3)
    assert call(*options, "--out", path).exit_code == 0
    found = states(path.read_text(encoding="utf-8"))
    assert [problem.name for problem in found] == [f"group-{n:02}" for n in range(11)]
    assert [len(problem.state.clients) for problem in found] == [3 + n % 3 for n in range(11)]
    assert [len(problem.state.tasks) for problem in found] == [12 + n % 4 for n in range(11)]
    assert found[4].data == make_problem(clients=4, tasks=12, seed=7) | {"name": "group-04"}
    assert call(*options).stdout == path.read_text(encoding="utf-8")


def test_clients_that_joined_have_nothing_and_those_that_left_are_gone():
    base = make_problem(clients=4, tasks=12, standbys=1, seed=1)
    [problem] = states(
        call("--clients", 4, "--standbys", 1, "--joined", 2, "--lost", 1, "--seed", 1).stdout
    )
    state = problem.state
    assert len(state.clients) == 5
    assert int((state.owner == NOBODY).sum()) == 3
    held = [set(client["active"]) | set(client["standby"]) for client in base["clients"].values()]
    given = [
        set(client["active"]) | set(client["standby"])
        for client in problem.data["clients"].values()
    ]
    assert given == [*held[1:], set(), set()]


WRONG = {
    "too many standbys": ["--standbys", 3],
    "too many subtopologies": ["--subtopologies", 13],
    "no client": ["--clients", 0],
    "all are lost": ["--lost", 3],
    "no number": ["--tasks", "many"],
    "high first": ["--tasks", "9-3"],
}


@pytest.mark.parametrize("what", WRONG)
def test_groups_that_cannot_be_are_not_made(what):
    result = call(*WRONG[what])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("assignor")


def test_a_file_that_cannot_be_written_is_an_environment_failure(tmp_path):
    result = call("--out", tmp_path / "no" / "file")
    assert result.exit_code == 3
    assert f"cannot write {tmp_path}/no/file" in result.stderr
    assert json.loads(call().stdout)["name"] == "steady-12x3x1-0"
