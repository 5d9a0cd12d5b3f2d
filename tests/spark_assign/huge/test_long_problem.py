"""Problems that are lines too long to be rows are read as `read_problem` reads them."""

import copy
import json
import random

import pytest

from assignor import ConfigError, read_problem
from assignor.cli import make_problem
from assignor.errors import TaskAssignmentError
from assignor.problems import parse_problem
from spark_assign.huge.lines.problem import read_long_problem
from spark_assign.huge.lines.rows import client_array, task_batches
from spark_assign.tables.convert import client_rows, task_rows

HALF = "\ud800"
# Of lags above the end offset sum, only a reader of whole problems warns.
ONLY_SHORT = "its state may be corrupted"
GONE = "tasks that do not exist"


def base(seed):
    made = make_problem(clients=4, tasks=24, standbys=1, seed=seed, racks=3)
    names = sorted(made["topics"])
    made["topics"][names[0]]["racks"] = {"0": ["b", "a", "a"], "1": [], "3": None}
    for number, client in enumerate(made["clients"].values()):
        client |= {"threads": number + 1, "tags": {"zone": str(number)}, "rack": f"rack-{number}"}
    return made | {"name": f"group-{seed}", "config": {"num.standby.replicas": 1}}


def first_client(data):
    return data["clients"][min(data["clients"])]


def set_at(*path, value):
    def edit(data):
        at = data
        for key in path[:-1]:
            at = first_client(at) if key == "CLIENT" else at.setdefault(key, {})
        at[path[-1]] = value

    return edit


def other_client(data):
    return data["clients"][sorted(data["clients"])[1]]


def give_twice(data):
    other_client(data)["active"] = list(first_client(data).get("active") or ["0_0"])
    first_client(data)["active"] = list(other_client(data)["active"])


EDITS = [
    *(
        set_at("CLIENT", key, value=value)
        for key in ("active", "standby", "lags")
        for value in (0, "", [], {}, None, 1, "0_0", ["0_0", "0_0"], ["x"], ["0_99"], {"0_0": 1})
    ),
    *(
        set_at("CLIENT", "lags", value={"0_0": value})
        for value in (0, -1, 7, 1.5, True, None, "running", "unknown", "x", 2**63 - 2, 2**63 - 1)
    ),
    *(set_at("CLIENT", "threads", value=value) for value in (0, -1, 1.5, "1", 10**6 + 1, None)),
    *(set_at("CLIENT", "rack", value=value) for value in (None, "", 3, "r", HALF)),
    *(set_at("CLIENT", "tags", value=value) for value in (None, {}, {"a": 1}, {"a": "b"}, 3)),
    *(set_at("CLIENT", key, value=1) for key in ("odd", "versions", "note")),
    *(
        set_at("end_offset_sums", name, value=value)
        for name in ("0_0", "0_1", "0_99", "x", "9_0")
        for value in (0, 5, -1, 1.5, True, "5", None, 2**63 - 2, 2**63 - 1, 10**18, 10**19)
    ),
    *(
        set_at("weights", name, value=value)
        for name in ("0_0", "9_9", "x")
        for value in (0, 2, 0.5, -1, 1e15, 1e16, 2**63, True, "1", None, float("nan"), float("inf"))
    ),
    *(set_at("events", value=value) for value in (None, [], {}, 3, [{"type": "x"}], [3])),
    set_at("events", value=[{"type": "leave", "clients": ["nobody"]}]),
    *(set_at("stuck", value=value) for value in (None, {}, 3, {"nobody": 5})),
    *(set_at(key, value=value) for key in ("topics", "subtopologies") for value in (None, {}, 3)),
    *(set_at("topics", "t", value=value) for value in ({"partitions": 2}, {}, None, 3)),
    *(set_at("topics", "t", "partitions", value=value) for value in (-1, 0, 1.5, True, 10**7 + 1)),
    *(set_at("topics", "t", value={"partitions": 2, "racks": racks}) for racks in (
        None, {}, {"0": []}, {"0": None}, {"0": ["a"], "1": ["b", "a"]}, {"x": ["a"]}, {"7": ["a"]},
        {"0": "a"}, {"0": [3]}, {"0": [HALF]}, 3,
    )),
    *(set_at("topics", "t", value={"partitions": 2, key: 1}) for key in ("odd", "note")),
    *(set_at("subtopologies", number, value=value) for number in ("7", "07", "x") for value in (
        None, {}, 3, {"sources": ["nothing"]}, {"sources": 3}, {"sources": []}, {"odd": 1},
    )),
    *(set_at("clients", value=value) for value in (None, {}, 3, {"a": None}, {"a": 3}, {HALF: {}})),
    *(set_at("config", value=value) for value in (None, {}, 3, {"x": 1})),
    set_at("config", "num.standby.replicas", value=-1),
    *(set_at("name", value=value) for value in (None, "", 3, "n", HALF)),
    *(set_at(key, value=1) for key in ("odd", "note", "protocol", "topology_version")),
    give_twice,
]  # fmt: skip


def short(text):
    data = parse_problem(text)
    problem = read_problem(data)
    json.dumps(data, ensure_ascii=False).encode()  # Spark writes no other texts
    state = problem.state
    return problem.name, client_rows(state), task_rows(state), warnings_of(state)


def long(text):
    problem = read_long_problem(text)
    tasks = [row for batch in task_batches(problem) for row in batch.to_pylist()]
    return problem.name, client_array(problem).to_pylist(), tasks, warnings_of(problem)


def warnings_of(read):
    found = {each for each in read.warnings if ONLY_SHORT not in each}
    return {GONE if GONE in each else each for each in found}


def outcome(read, text):
    """What a reader reads, or "refused"; other errors are none of a reader."""
    try:
        return read(text)
    except (TaskAssignmentError, ConfigError, UnicodeEncodeError):
        return "refused"


def edited(seed):
    draw = random.Random(seed)  # noqa: S311 no secret
    data = copy.deepcopy(base(seed % 5))
    for edit in draw.sample(EDITS, draw.choice((1, 1, 1, 2, 3))):
        try:
            edit(data)
        except (AttributeError, TypeError, KeyError, IndexError):
            continue  # what it changes is gone
    return json.dumps(data, indent=draw.choice((None, None, 1)))


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_each_edit_is_read_alike(number):
    data = base(1)
    EDITS[number](data)
    text = json.dumps(data)
    assert outcome(long, text) == outcome(short, text)


@pytest.mark.parametrize("part", range(10))
def test_several_edits_are_read_alike(part):
    for seed in range(60 * part, 60 * part + 60):
        text = edited(seed)
        assert outcome(long, text) == outcome(short, text), text


@pytest.mark.parametrize(
    "key",
    ["name", "config", "topics", "subtopologies", "clients", "end_offset_sums", "weights"],
)
def test_a_key_that_is_given_twice_is_named(key):
    text = json.dumps(base(1))
    again = json.dumps({key: base(2).get(key, {})})
    twice = (
        f"{text[:-1]},{again[1:]}" if key in base(1) else f"{text[:-1]},{again[1:-1]},{again[1:]}"
    )
    with pytest.raises(TaskAssignmentError, match=f"key {key} is given twice"):
        read_long_problem(twice)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ('"threads": 1, "threads": 2', "threads"),
        ('"lags": {"0_0": 1, "0_0": 2}', "0_0"),
        ('"tags": {"a": "b", "a": "b"}', "a"),
    ],
)
def test_a_key_of_a_client_that_is_given_twice_is_named(part, name):
    with pytest.raises(TaskAssignmentError, match=f"key {name} is given twice"):
        read_long_problem(f'{{"clients": {{"a": {{{part}}}}}}}')


def test_an_end_offset_sum_that_is_given_twice_is_named():
    topics = '"topics": {"t": {"partitions": 3}}, "subtopologies": {"0": {"sources": ["t"]}}'
    for sums in ('"0_1": 5, "0_2": 6, "0_1": 7', '"0_1": 5, "0_1": 5'):
        with pytest.raises(TaskAssignmentError, match="key 0_1 is given twice"):
            read_long_problem(
                f'{{{topics}, "clients": {{"a": {{}}}}, "end_offset_sums": {{{sums}}}}}'
            )


def test_a_problem_of_several_batches_keeps_every_task():
    width = (1 << 16) + 3
    given = {
        "topics": {"t": {"partitions": width}},
        "subtopologies": {"0": {"sources": ["t"]}, "1": {"sources": ["t"], "changelogs": ["log"]}},
        "clients": {
            "a": {"active": [f"0_{width - 1}", "1_0"]},
            "b": {"lags": {f"1_{width - 1}": 4}},
        },
        "end_offset_sums": {f"{part}_{width - 1}": 9 for part in (0, 1)},
    }
    text = json.dumps(given)
    read = long(text)
    assert len(read[2]) == 2 * width
    assert read == short(text)
