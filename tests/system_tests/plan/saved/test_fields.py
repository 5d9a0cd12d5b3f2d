"""Every field of a saved group is checked: an invalid one is a sentence, and one row of many."""

import copy
import json

import pytest
from click.testing import CliRunner

from assignor.inspection.group import inspect_group
from assignor.inspection.saved_problem import problem_of
from encoding import RebalanceError
from system_tests.cli.main import main
from system_tests.plan.saved import read_saved, read_saved_topology
from tests.assignor.inspection.described_groups import captured

HALF = "\ud800"
NESTED = json.loads("[" * 300 + "]" * 300)
VALUES = (
    *(None, 5, -1, 0, True, 1.5, 10**30, float("nan"), float("inf")),
    *("x", "", "\n", HALF, "x" * 100_000),
    *([], [[]], [5], [None], [{}], [{"a": []}], [HALF], NESTED),
    *({}, {"a": 5}, {"0": 5}, {"0_0": -1}, {"a": None}, {HALF: 1}, {"a": NESTED}),
)


def whole_group():
    """Return a saved group with every field that the file format has."""
    found = problem_of(inspect_group(*captured("two-3.9.1")))
    for number, client in enumerate(found["clients"].values()):
        client |= {"instance_ids": [f"i{number}"], "rack": "r", "tags": {"zone": "a"}}
        client["endpoint"] = "localhost:1"
    more = {"unattributed_changelogs": {"c": 5}, "topology_version": 2, "protocol": "classic"}
    return found | more | {"weights": {"0_0": 1}, "events": [], "stuck": {}}


def places(value, at=()):
    """Yield the path of each field."""
    keys = value if isinstance(value, dict) else range(min(2, len(value)))
    for key in keys:
        yield (*at, key)
        if isinstance(value[key], dict | list):
            yield from places(value[key], (*at, key))


def changed(group, path, value):
    """Return the group with another value of a field."""
    found = copy.deepcopy(group)
    holder = found
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return found


def error_of(reader, file):
    """Return the sentence of a reader that refuses a file; empty if it takes the file."""
    try:
        reader(file)
    except RebalanceError as error:
        return str(error)
    return ""


def test_each_field_takes_its_values_or_is_refused_with_a_sentence(tmp_path):
    group, file = whole_group(), tmp_path / "g.json"
    refused = 0
    for path in places(group):
        for value in VALUES:
            file.write_text(json.dumps(changed(group, path, value)), encoding="utf-8")
            errors = [error_of(reader, file) for reader in (read_saved, read_saved_topology)]
            refused += bool(errors[0])
            assert errors[0] == errors[1] or not errors[0]
            assert all(len(error) < 1000 and error.isprintable() for error in errors), path
    assert refused > 1000


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"unattributed_changelogs": 5}, "unattributed_changelogs is 5; give an object of topics"),
        ({"unattributed_changelogs": {"c": 10**30}}, "unattributed_changelogs: c is 1,000,000"),
        ({"topology_version": 0}, "topology_version is 0; give a number from 1 to"),
        ({"name": f"a{HALF}"}, r"name has 'a\ud800': half a surrogate pair, which UTF-8"),
        ({"note": [{HALF: 1}]}, r"note has '\ud800': half a surrogate pair, which UTF-8"),
        ({"instance_ids": 5}, "instance_ids is int; give a list"),
        ({"instance_ids": [5]}, "instance_ids has entry 5; give texts"),
        ({"client": 5}, "has client 5; give its name, or leave it out"),
    ],
)
def test_a_line_with_an_invalid_field_is_one_red_row_of_many(tmp_path, change, sentence):
    good = whole_group()
    rows = {name: row | change for name, row in good["clients"].items()}
    bad = good | ({"clients": rows} if {*change} & {"instance_ids", "client"} else change)
    file = tmp_path / "groups.jsonl"
    lines = [good | {"name": "first"}, bad, good | {"name": "last"}]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    words = ["plan", "--all", "--problem", str(file), "--from", "3.9.1", "--to", "4.3"]
    done = CliRunner().invoke(main, [*words, "--no-costs", "--format", "json"])
    assert done.exit_code == 1
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["is_red"] for row in rows] == [False, True, False]
    assert sentence in rows[1]["verdict"]


def test_topics_of_foreign_key_joins_are_internal_and_not_input(tmp_path):
    group, file = whole_group(), tmp_path / "g.json"
    joins = [
        "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000004-topic",
        "app-orders-subscription-response-topic",
    ]
    topics = {name: {"partitions": 1} for name in ("users", "app-x-repartition", *joins)}
    parts = {"0": {"sources": [*topics], "changelogs": ["app-t-changelog", "users"]}}
    whole = {"name": "app", "topics": topics, "subtopologies": parts, "end_offset_sums": {}}
    clients = {"p": {"active": ["0_0"]}}
    loose = {"unattributed_changelogs": {"app-u-changelog": 1}}
    file.write_text(json.dumps(group | whole | loose | {"clients": clients}), encoding="utf-8")
    found = read_saved(file).group
    assert found.input_topics == ("users",)
    assert found.repartition_topics == (*joins[:1], joins[1], "app-x-repartition")
    logs = ("app-t-changelog", "app-u-changelog")
    assert found.internal_topics == tuple(sorted((*found.repartition_topics, *logs)))
    _, planned = read_saved_topology(file)
    assert {t.name for t in planned.subtopologies[0].repartition_topics} == {
        *found.repartition_topics
    }


def test_clients_of_the_same_name_stay_two_clients(tmp_path):
    group, file = whole_group(), tmp_path / "g.json"
    for client in group["clients"].values():
        client["client"] = "orders"
    file.write_text(json.dumps(group), encoding="utf-8")
    known = read_saved(file).releases_by_client
    assert sorted(known) == [f"orders ({process})" for process in sorted(group["clients"])]
    first, second = group["clients"].values()
    first["versions"], second["versions"] = [{"releases": ["2.3.1"]}], [{"releases": ["3.9.1"]}]
    file.write_text(json.dumps(group), encoding="utf-8")
    done = CliRunner().invoke(main, ["plan", "--problem", str(file), "--to", "4.3", "--no-costs"])
    assert done.exit_code == 2
    assert "members of the group differ: " in done.stderr
