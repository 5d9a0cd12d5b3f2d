"""The quick reader of problems reads what `read_problem` reads, or leaves the problem to it."""

import gzip
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assignor import read_problem
from assignor.cli import make_problem
from encoding import RebalanceError
from spark_assign.workers.problem_columns import quick_state
from tests.spark_assign.workers.any_values import anything, changed, paths

SAMPLE = Path(__file__).parents[2] / "assignor" / "problems" / "open_sample.jsonl.gz"
PROBLEM = {
    "name": "usual",
    "config": {"num.standby.replicas": 1, "rack.aware.assignment.tags": ["zone"]},
    "topics": {"t": {"partitions": 3}, "u": {"partitions": 2}, "d": {"partitions": 1}},
    "subtopologies": {
        "10": {"sources": ["t", "u"], "changelogs": ["c", "d"]},
        "2": {"sources": ["u"], "changelogs": ["d"]},
        "3": {"sources": ["t"]},
    },
    "end_offset_sums": {"10_0": 500, "10_1": 90},
    "clients": {
        "b": {
            "threads": 2,
            "rack": "r",
            "tags": {"zone": "x"},
            "active": ["10_0", "2_1", "3_2"],
            "standby": ["10_2"],
            "lags": {"10_2": 7, "2_1": "running", "10_0": "running", "10_1": "unknown"},
        },
        "a": {"rack": "", "active": [], "lags": {"10_2": 501, "10_0": 0}},
    },
}


def assert_equal(quick, state):
    for field in fields(state):
        found, expected = getattr(quick, field.name), getattr(state, field.name)
        if isinstance(expected, np.ndarray):
            assert found.dtype == expected.dtype, field.name
            np.testing.assert_array_equal(found, expected, err_msg=field.name)
        else:
            assert type(found) is type(expected), field.name
            assert found == expected, field.name


def sample_problems():
    with gzip.open(SAMPLE, "rt", encoding="utf-8") as sample:
        open_sample = [json.loads(line) for line in sample]
    made = [make_problem(clients=5, tasks=40, standbys=1, seed=seed) for seed in range(20)]
    return [PROBLEM, *made, *open_sample]


@pytest.mark.parametrize("settings", [{}, {"num.standby.replicas": 2, "max.warmup.replicas": 1}])
def test_usual_problems_are_read_quickly_and_equal(settings):
    read = 0
    for problem in sample_problems():
        quick = quick_state(problem, settings)
        if quick is not None:
            assert_equal(quick, read_problem(problem, settings=settings).state)
            read += 1
    assert quick_state(PROBLEM, settings) is not None
    assert read > 25


def test_states_of_one_shape_share_no_array():
    first, second = quick_state(PROBLEM, {}), quick_state(PROBLEM, {})
    for field in fields(first):
        column = getattr(first, field.name)
        if isinstance(column, np.ndarray):
            assert not np.shares_memory(column, getattr(second, field.name)), field.name


UNUSUAL = {
    "a lag above the end offset sum": ({}, True),
    "a task that runs twice": (
        {"clients": {"a": {"active": ["2_0"]}, "b": {"active": ["2_0"]}}},
        False,
    ),
    "a task that runs on two clients by their lags": (
        {"clients": {name: {"lags": {"2_0": "running"}} for name in ("a", "b")}},
        False,
    ),
    "a task that runs on another client by its lag": (
        {"clients": {"a": {"active": ["2_0"]}, "b": {"lags": {"2_0": "running"}}}},
        False,
    ),
    "a task that no client runs but by a lag": (
        {"clients": {"a": {"active": []}, "b": {"lags": {"2_0": "running"}}}},
        True,
    ),
    "active and standby": ({"clients": {"a": {"active": ["2_0"], "standby": ["2_0"]}}}, False),
    "a lag of -1": ({"clients": {"a": {"lags": {"2_0": -1}}}}, False),
    "a lag of 2**63 - 1": ({"clients": {"a": {"lags": {"2_0": 2**63 - 1}}}}, False),
    "an end offset sum of 2**63 - 1": ({"end_offset_sums": {"2_0": 2**63 - 1}}, False),
    "a lag that is true": ({"clients": {"a": {"lags": {"2_0": True}}}}, False),
    "tags that are no object": ({"clients": {"a": {"tags": []}}}, False),
    "a rack of false": ({"clients": {"a": {"rack": False}}}, False),
    "a task that does not exist": ({"clients": {"a": {"active": ["2_9"]}}}, False),
    "an unknown key": ({"odd": 1}, False),
    "weights": ({"weights": {"2_0": 2}}, False),
    "no clients": ({"clients": {}}, False),
    "a setting of true": ({"config": {"num.standby.replicas": True}}, False),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_what_is_rejected_or_warned_about_is_left_to_the_other_reader(what):
    changes, is_usual = UNUSUAL[what]
    assert (quick_state(PROBLEM | changes, {}) is not None) == is_usual


@st.composite
def problems(draw):
    problem = PROBLEM
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(paths(problem), key=repr)))
        problem = changed(problem, path, draw(anything))
    return problem


@example(problem=PROBLEM | {"clients": {"a": {"active": None, "lags": None, "tags": None}}})
@example(problem=PROBLEM | {"config": {"max.warmup.replicas": None}, "end_offset_sums": None})
@given(problem=problems())
def test_a_changed_problem_is_read_equally_or_left_to_the_other_reader(problem):
    quick = quick_state(problem, {}) if isinstance(problem, dict) else None
    if quick is None:
        return
    try:
        state = read_problem(problem).state
    except RebalanceError as error:
        pytest.fail(f"read quickly, but invalid: {error}")
    assert_equal(quick, state)
