"""Scenarios and their costs, without Spark."""

import json

import numpy as np
import pytest

from assignor import ConfigError, read_problem, validate
from assignor.placement import find_strategy
from assignor.problems import ProblemError
from probing import ReleaseError
from spark_assign.whatif.measures import cross_rack, measures
from spark_assign.whatif.scenarios import case_of, parse_scenarios, subjects, with_clients, without
from tests.assignor import broken_strategies

STRATEGY = find_strategy("high_availability")


def group(*, racks=("r0", "r0", "r1"), **config):
    """Three clients in two racks, two zones; six stateful tasks with a standby each."""
    owners = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    copies = {"b": [0, 1], "c": [2, 3], "a": [4, 5]}
    return read_problem(
        {
            "name": "orders",
            "config": {"num.standby.replicas": 1} | config,
            "topics": {
                "in": {"partitions": 6, "racks": {str(p): ["r0"] for p in range(6)}},
                "log": {"partitions": 6},
            },
            "subtopologies": {"0": {"sources": ["in"], "changelogs": ["log"]}},
            "end_offset_sums": {f"0_{p}": 600_000 for p in range(6)},
            "clients": {
                name: {
                    "threads": 1,
                    "rack": racks["abc".index(name)],
                    "tags": {"zone": "east" if name == "a" else "west"},
                    "active": [f"0_{p}" for p in owners[name]],
                    "lags": {f"0_{p}": "running" for p in owners[name]}
                    | {f"0_{p}": 10 for p in copies[name]},
                }
                for name in "abc"
            },
        }
    ).state


def played(word, state):
    scenario = parse_scenarios((word,))[-1]
    return [case_of(scenario, subject, state, STRATEGY) for subject in subjects(scenario, state)]


def test_group_as_it_is_stays_as_it_is():
    [case] = played("now", group(racks=(None, None, None)))
    cost = measures(case)
    assert (cost["rounds"], cost["handoffs"], cost["restores"], cost["settled"]) == (1, 0, 0, True)
    assert cost["load_max"] == cost["load_mean"] == 4.0
    assert cost["converge_ms"] == 1  # twenty records on each client


@pytest.mark.parametrize("name", ["raises", "exits", "returns_dict", "drops_a_task"])
def test_a_strategy_that_fails_is_the_error_of_its_case(name):
    [now] = parse_scenarios(())
    case = case_of(now, "", group(), getattr(broken_strategies, name))
    assert f"strategy {name}" in case.error
    assert measures(case) == {}


def test_each_client_fails_once_and_its_tasks_go_to_their_standbys():
    cases = played("lose-client", group())
    assert [case.subject for case in cases] == ["a", "b", "c"]
    for case in cases:
        state = case.rounds[0].state
        assert case.subject not in state.clients
        cost = measures(case)
        # Both standbys are on one client, which hands one task over to the other.
        assert (cost["takeovers"], cost["handoffs"], cost["cold"]) == (2, 1, 0)
        # The client had two tasks and two standbys: four copies are restored.
        assert cost["restores"] == 4
        assert cost["restored_records"] >= 4 * 600_000
        assert cost["outage_ms"] <= 1
        assert cost["converge_ms"] >= 2 * 600_000 * 1000 // 50_000


def test_a_slower_disk_takes_longer():
    [case, *_] = played("lose-client", group())
    fast, slow = (measures(case, restore_rate=rate)["converge_ms"] for rate in (100_000, 10_000))
    assert slow >= 9 * fast > 0


def test_racks_and_zones_fail_as_a_whole():
    assert [case.subject for case in played("lose-rack", group())] == ["r0", "r1"]
    zones = played("lose-zone", group())
    assert [case.subject for case in zones] == ["east", "west"]
    assert zones[1].rounds[0].state.clients == ("a",)
    assert [case.subject for case in played("lose-tag:cluster", group())] == []


def test_losing_the_only_client_is_impossible():
    alone = without(group(), {0, 1})
    [case] = played("lose-client", alone)
    assert "no client would be left" in case.error
    assert measures(case) == {}


def test_added_clients_take_their_share_and_no_task_is_lost():
    [case] = played("add:3", group())
    last = case.rounds[-1]
    assert len(last.state.clients) == 6
    assert {"r0", "r1"} == set(last.state.racks)
    assert np.bincount(last.assignment.active).max() == 1
    assert validate(last.state, last.assignment) == ()
    assert measures(case)["handoffs"] == 3


def test_clients_come_and_go_without_a_trace():
    state = group()
    bigger = with_clients(state, 2)
    back = without(bigger, {i for i, name in enumerate(bigger.clients) if name.startswith("added")})
    for name in ("owner", "copy_start", "copy_client", "copy_lag", "threads"):
        assert getattr(back, name).tolist() == getattr(state, name).tolist(), name
    assert (back.clients, back.racks, back.tags) == (state.clients, state.racks, state.tags)
    # Copies that `standby` does not have are only on disk, of the same clients under any number.
    assert state.left_over == back.left_over == ((0, 1), (1, 1), (2, 2), (3, 2), (4, 0), (5, 0))
    assert without(state, {0}).left_over == ((0, 0), (1, 0), (2, 1), (3, 1))


def test_upgrade_bounces_every_client_once_a_bounce():
    [case] = played("release:3.1:3.9", group())
    assert measures(case)["rounds"] >= 6
    [two] = played("release:1.1:3.9", group())
    assert measures(two)["rounds"] >= 2 * 6
    [no] = played("release:2.0.1:2.1.1", group())
    assert no.rounds or no.error


def test_other_settings_and_strategies():
    [case] = played("config:num.standby.replicas=2;max.warmup.replicas=1", group())
    assert len(case.rounds[-1].assignment.standbys) == 12
    for name in ("kafka_high_availability", "kafka_streams_group"):
        [kafka] = played(f"strategy:{name}", group())
        assert validate(kafka.rounds[0].state, kafka.rounds[0].assignment) == ()


def test_cross_rack_reads_are_counted_where_clients_are():
    state = group()
    [case] = played("now", state)
    # Sources are in r0 only, and c is in r1 with two tasks; racks of changelogs are unknown.
    assert cross_rack(state, case.rounds[0].assignment) == (2, 0)


@pytest.mark.parametrize(
    "word",
    [
        "lose-clients",
        "add",
        "add:0",
        "add:x",
        "add:²",
        "add:" + "1" * 5_000,
        "config",
        "config:no.such=1",
        "strategy:x",
        "now:1",
    ],
)
def test_invalid_scenarios_are_errors(word):
    with pytest.raises(ConfigError):
        parse_scenarios((word,))


def test_unknown_releases_are_errors():
    with pytest.raises(ReleaseError):
        parse_scenarios(("release:3.1:99.0",))


def test_now_comes_first_and_nothing_twice():
    words = [str(scenario) for scenario in parse_scenarios(("add:1,now", "add:1, lose-zone"))]
    assert words == ["now", "add:1", "lose-tag:zone"]


def test_measures_are_plain_numbers():
    [case] = played("add:1", group())
    assert json.loads(json.dumps(measures(case))) == measures(case)


def test_losing_all_clients_is_an_error():
    with pytest.raises(ProblemError):
        without(group(), {0, 1, 2})
