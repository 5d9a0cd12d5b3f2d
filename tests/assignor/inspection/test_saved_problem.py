"""A live group saved as a problem file, read by the readers of the commands."""

from dataclasses import replace

import pytest

from assignor.cli.size.group import read_group
from assignor.inspection.group import inspect_group
from assignor.inspection.saved_problem import problem_of, process_named
from assignor.inspection.values import ClusterFacts, TopicFacts
from assignor.placement.strategies import named_strategy
from assignor.problems.events import play_problem
from assignor.problems.files import read_problem
from assignor.problems.values import ProblemError
from encoding import NativeAssignment, TaskId, TopicPartition
from tests.assignor.inspection.described_groups import FACTS, captured, group_of, member

NAMES = ["two-3.9.1", "two-3.9.1-and-native", "pinned-2.3.1", "old-2.3.1", "natives"]
T00, T01 = TaskId(0, 0), TaskId(0, 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lags", ["caught-up", "reported"])
def test_every_captured_group_is_read_back_as_it_is(name, lags):
    look = inspect_group(*captured(name))
    problem = problem_of(look, lags=lags)
    state = read_problem(problem).state
    assert state.tasks == tuple(entry.task for entry in look.tasks)
    assert state.warnings == ()
    assert [state.clients[owner] for owner in state.owner] == [
        entry.owners[0] for entry in look.tasks
    ]
    assert state.stateful.tolist() == [False] * 4 + [True] * 4
    assert state.end_offset_sums.tolist()[4:] == [entry.end_sum for entry in look.tasks[4:]]
    assert state.config.num_standby_replicas == 1
    assert len(list(read_group(problem).members())) == len(look.members)


def test_copies_are_caught_up_or_as_reported():
    look = inspect_group(*captured("two-3.9.1"))
    jvm0, jvm1 = look.clients
    taken = problem_of(look)["clients"]
    assert taken[jvm1.process]["lags"] == {
        "1_0": "running", "1_1": 0, "1_2": "running", "1_3": 0,
    }  # fmt: skip
    reported = problem_of(look, lags="reported")["clients"]
    assert reported[jvm1.process]["lags"] | {} == {
        "1_0": "running", "1_1": 104, "1_2": "running", "1_3": 209,
    }  # fmt: skip
    # It reported no offsets of copies that were assigned in this rebalance.
    assert reported[jvm0.process]["lags"]["1_0"] == "unknown"


def test_copies_that_may_still_warm_up_are_not_taken_as_caught_up():
    follow_up = {"next_rebalance_ms": 5000}
    native = NativeAssignment(warmup_tasks=(T01,))
    for answer, lags in (
        (follow_up, {"0_0": "unknown", "0_1": "unknown"}),
        (follow_up | {"native": native}, {"0_0": 0, "0_1": "unknown"}),
    ):
        look = inspect_group(
            group_of(
                member("a", process=1, active=[T00, T01]),
                member("b", process=2, standby=[T00, T01], answer=answer),
            )
        )
        clients = problem_of(look)["clients"]
        assert (
            next(client for client in clients.values() if client["client"] == "b")["lags"] == lags
        )


@pytest.mark.parametrize("name", ["old", "92690a0b-5726-4eb3-9303-4eb6c69a25e6", "92690"])
def test_a_client_that_dies_is_an_event_of_the_simulation(name):
    look = inspect_group(*captured("pinned-2.3.1"))
    problem = problem_of(look, dies=[name])
    assert problem["events"] == [
        {"type": "leave", "clients": ["92690a0b-5726-4eb3-9303-4eb6c69a25e6"]}
    ]
    phases = list(play_problem(read_problem(problem), named_strategy("high_availability")))
    assert [event for event, _ in phases] == ["start", "leave"]
    assert len(phases[-1][1][-1].state.clients) == 3


def test_racks_tags_endpoints_and_versions_are_kept():
    topics = {"in": TopicFacts(partitions=2, racks={0: frozenset({"r2", "r1"})})}
    described = member(
        "a", active=[T00, T01], rack="r1", client_tags={"zone": "z"}, user_endpoint="a:1",
        used=2, supported=-1,
    )  # fmt: skip
    two = member("b", active=[], rack="r1", client_tags={"zone": "z"})
    problem = problem_of(inspect_group(group_of(described, two), ClusterFacts(topics=topics)))
    assert problem["topics"]["in"] == {"partitions": 2, "racks": {"0": ["r1", "r2"]}}
    clients = {entry["client"]: entry for entry in problem["clients"].values()}
    assert clients["a"]["rack"] == clients["b"]["rack"] == "r1"
    assert clients["b"]["tags"] == {"zone": "z"}
    assert "tags" not in clients["a"]  # version 2 has no tags
    assert clients["a"]["endpoint"] == "a:1"
    (versions,) = clients["a"]["versions"]
    assert (versions["used"], versions["pinned"]) == (2, True)
    assert (versions["releases"][0], versions["releases"][-1]) == ("3.4.0", "3.9.2")


def test_an_unknown_value_is_a_placeholder_and_reported():
    look = inspect_group(
        group_of(member("a", active=[T00, T01]), member("b", standby=[T00])), ClusterFacts()
    )
    problem = problem_of(look)
    assert problem["topics"] == {"app-subtopology-0-input": {"partitions": 2}}
    assert problem["subtopologies"]["0"]["changelogs"] == ["app-subtopology-0-changelog"]
    assert "inputs of subtopology 0 are placeholders" in problem["note"]
    assert read_problem(problem).state.stateful.all()


def test_a_subtopology_has_as_many_tasks_as_its_widest_topic():
    topics = {"in": TopicFacts(partitions=2), "wide": TopicFacts(partitions=3)}
    wide = member("b", process=2, active=[T00._replace(partition=2)], inputs="wide")
    look = inspect_group(
        group_of(member("a", process=1, active=[T00, T01]), wide), ClusterFacts(topics=topics)
    )
    problem = problem_of(look)
    assert problem["subtopologies"]["0"]["sources"] == ["in", "wide"]
    assert "placeholders" not in problem["note"]
    assert len(read_problem(problem).state.tasks) == 3


def test_what_cannot_be_saved_is_refused():
    stock = inspect_group(replace(captured("two-3.9.1")[0], protocol_name="range"))
    with pytest.raises(ProblemError, match="only Streams groups can be saved"):
        problem_of(stock)
    named = inspect_group(group_of(member("a", active=[TaskId(0, 0, "named")])))
    with pytest.raises(ProblemError, match="named topologies"):
        problem_of(named)
    look = inspect_group(*captured("two-3.9.1"))
    with pytest.raises(ProblemError, match="'jvm9' is not a client of the group; choose from jvm0"):
        process_named(look, "jvm9")
    with pytest.raises(ProblemError, match="matches 2 clients"):
        process_named(look, "")


def test_a_task_on_two_clients_goes_to_the_first_so_that_the_file_can_be_read():
    look = inspect_group(
        group_of(member("a", process=1, active=[T00, T01]), member("b", process=2, active=[T00])),
        ClusterFacts(end_offsets={TopicPartition("in", 0): 1}),
    )
    state = read_problem(problem_of(look)).state
    assert state.owner.tolist() == [0, 0]


def test_a_task_number_out_of_all_proportion_makes_no_problem():
    look = inspect_group(group_of(member("a", active=[TaskId(0, 0), TaskId(0, 300_000)])), FACTS)
    with pytest.raises(ProblemError, match="a member has task 0_300000, and only 3 tasks"):
        problem_of(look)
