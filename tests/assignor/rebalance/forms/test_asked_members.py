"""Members that are asked to describe their topology, and members that claim what others run."""

from dataclasses import replace

import pytest

from assignor.rebalance.forms.asking import ASKS_MOST, Asked, TopologyMemory
from assignor.rebalance.forms.carried import program_fingerprint, rows_of
from assignor.rebalance.forms.group import read_topologies
from assignor.topology.changes import carried_topologies
from encoding import RUNNING, TaskId
from probing.topologies.members import MOST_ASKED
from tests.assignor.rebalance.forms.attacked import Attacked, hostile
from tests.assignor.rebalance.forms.mixed_group import COUNTS, MixedGroup, counting
from tests.assignor.rebalance.groups import start
from tests.assignor.rebalance.leader.hostile import written

NEW = counting(2, stores=("counts", "more"))


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_member_that_crashes_again_and_again_keeps_no_task_from_starting(cooperative):
    group = MixedGroup(cooperative=cooperative)
    group.start("m0", NEW)
    group.start("m1", NEW)
    group.settle("m0")
    group.stop("m1")
    idle = []
    for number in range(ASKS_MOST + 1):
        group.start(f"old-{number}", counting())
        group.rebalance("m0")
        idle.append(group.forms("lines").count(None))
        group.stop(f"old-{number}")
    assert idle == [2] * ASKS_MOST + [0]


def thief(program, name, generation):
    """A member that claims all tasks of subtopology 0."""
    return written(
        start("native", number=55),
        name,
        sums={TaskId(0, partition): RUNNING for partition in range(4)},
        native={
            "fingerprint": program_fingerprint(program),
            "topology_version": program.all_versions[-1],
            "owned_generation": generation,
            "carried": rows_of(program),
        },
    )


@pytest.mark.parametrize("name", ["a", "z"])
def test_a_claim_takes_no_task_while_other_members_are_asked(name):
    group = Attacked(counting(), counting())
    assert group.lead() == group.lead()
    ran = {m: group.last.answers[m].partitions for m in group.members}
    group.lead(
        thief(group.programs["m0"], name, group.generation), hostile(fingerprint=b"no topol")
    )
    assert group.last.memory.topologies.asked
    assert {m: group.last.answers[m].partitions for m in group.members} == ran
    assert group.last.answers[name].partitions == ()


@pytest.mark.parametrize("name", ["a", "z"])
def test_a_claim_takes_no_task_in_the_middle_of_a_change(name):
    group = Attacked(counting(), counting(), counting())
    group.lead()
    group.stop("m2")
    group.start("m3", NEW)
    for _ in range(3):
        group.lead()
    ran = {m: group.last.answers[m].partitions for m in group.members}
    for _ in range(3):
        group.lead(thief(group.programs["m1"], name, group.generation))
        assert {m: group.last.answers[m].partitions for m in group.members} == ran
        assert group.last.answers[name].partitions == ()


UNKNOWN = counting(sources=("other",))


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("misses", [1, MOST_ASKED - 1])
def test_a_member_that_misses_the_question_is_asked_again(cooperative, misses):
    group = MixedGroup(cooperative=cooperative)
    group.start("m0", counting())
    group.settle("m0")
    group.start("m1", UNKNOWN)
    for _ in range(misses):
        group.rebalance("m0", missing={"m1"})
        assert group.last.memory.topologies.asked.keys() == {"m1"}
        assert group.last.answers["m1"].assignment.native.describe_topology
    # It takes the question, and describes its topology in the next rebalance.
    assert group.settle("m0") == 2
    assert group.last.memory.topologies.asked == {}
    assert (group.forms("lines"), group.forms("other")) == ([("counts",)] * 4, [()] * 2)
    assert group.settle("m0") == 1


def test_a_member_that_takes_no_answer_is_not_asked_for_ever_and_stops_no_task():
    group = MixedGroup()
    group.start("m0", counting())
    group.settle("m0")
    group.start("m1", UNKNOWN)
    for _ in range(MOST_ASKED + 1):
        group.rebalance("m0", missing={"m1"})
        assert group.forms("lines") == [("counts",)] * 4
    [warning] = [w for w in group.last.warnings if "m1 gets no tasks" in w]
    assert "it took none of the answers that asked for its topology" in warning
    # The first answer that it takes tells it to describe its topology.
    group.rebalance("m0")
    group.rebalance("m0")
    assert group.forms("other") == [()] * 2


def test_a_member_that_took_the_question_and_describes_nothing_is_of_an_old_release():
    group = Attacked(counting())
    group.lead()
    program = program_fingerprint(carried_topologies([NEW], "app"))
    fields = {"fingerprint": program, "version": 2}
    group.lead(hostile(**fields))
    assert group.last.memory.topologies.asked.keys() == {"x"}
    for _ in range(2):
        group.lead(hostile(**fields, owned_generation=group.generation))
        [warning] = [w for w in group.last.warnings if "x gets no tasks" in w]
        assert "its release does not describe topologies" in warning


def test_a_member_of_a_client_that_tells_no_generation_is_asked_a_few_times_only():
    group = Attacked(counting())
    group.lead()
    asked = []
    for _ in range(MOST_ASKED + 2):
        group.lead(hostile())
        at_ms = group.last.answers["x"].assignment.next_rebalance_ms
        asked.append(at_ms == 0)
    assert asked == [True] * MOST_ASKED + [False] * 2


@pytest.mark.parametrize("later", [1, 2])
def test_what_an_asked_member_ran_is_known_in_the_next_generation_alone(later):
    own = carried_topologies([counting()], "app")
    ran = {"x": (TaskId(0, 1),)}
    memory = TopologyMemory(asked={"x": Asked(times=1, generation=7)}, ran=ran, asked_in=7)
    found = read_topologies(
        own, {}, memory, leader_id=None, partition_counts=COUNTS, generation=7 + later
    )
    assert found.ran == (ran if later == 1 else {})


def test_an_asked_rebalance_tells_what_the_group_has_reached():
    group = MixedGroup()
    group.start("m0", counting())
    group.start("m1", NEW)
    group.settle("m1")
    reached = group.members["m1"].topology.reached
    assert reached
    group.start("m2", counting())
    group.start("m3", UNKNOWN)
    group.rebalance("m1")
    assert group.last.memory.topologies.asked.keys() == {"m3"}
    for name in ("m2", "m3"):
        assert group.members[name].topology.reached == reached


def copies_of(group):
    return {name: dict(member.held.standby) for name, member in group.members.items()}


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("program", [counting(), NEW], ids=["plain", "changed"])
def test_standbys_go_on_while_members_are_asked(cooperative, program):
    group = MixedGroup(cooperative=cooperative, standbys=1)
    for name in ("m0", "m1", "m2"):
        group.start(name, program)
    group.settle("m0")
    before, ran = copies_of(group), group.owners("lines")
    assert sum(map(len, before.values())) == 4
    group.start("m3", UNKNOWN)
    group.rebalance("m0")
    assert group.last.memory.topologies.asked.keys() == {"m3"}
    assert copies_of(group) == {**before, "m3": {}}
    assert group.owners("lines") == ran
    group.settle("m0")
    assert {name: copies_of(group)[name] for name in before} == before


def test_of_more_copies_those_go_on_that_have_most_and_none_of_a_task_that_pauses():
    group = MixedGroup(standbys=1)
    for name in ("m0", "m1", "m2", "m3"):
        group.start(name, counting())
    group.settle("m0")
    [task], [paused] = (list(group.members[name].held.active) for name in ("m0", "m3"))
    # Copies on the disk of members that need not be standbys.
    for member in group.members.values():
        member.held = replace(member.held, standby={})
    group.sums = {"m0": {paused: 9}, "m1": {task: 1, paused: 9}, "m2": {task: 7}}
    group.start("m4", UNKNOWN)
    group.stop("m3")
    group.rebalance("m0")
    assert {name: list(copies) for name, copies in copies_of(group).items()} == {
        "m0": [],
        "m1": [],
        "m2": [task],
        "m4": [],
    }


def test_without_standby_replicas_a_copy_on_disk_does_not_become_one():
    group = MixedGroup()
    group.start("m0", counting())
    group.start("m1", counting())
    group.settle("m0")
    group.sums = {"m1": dict.fromkeys(group.members["m0"].held.active, 5)}
    group.start("m2", UNKNOWN)
    group.rebalance("m0")
    assert group.last.memory.topologies.asked
    assert copies_of(group) == {"m0": {}, "m1": {}, "m2": {}}
