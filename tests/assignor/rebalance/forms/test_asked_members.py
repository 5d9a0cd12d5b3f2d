"""Members that are asked to describe their topology, and members that claim what others run."""

import pytest

from assignor.rebalance.forms import program_fingerprint
from assignor.rebalance.forms.carried import rows_of
from assignor.rebalance.forms.group import ASKS_MOST
from encoding import RUNNING, TaskId
from tests.assignor.rebalance.forms.attacked import Attacked, hostile
from tests.assignor.rebalance.forms.mixed_group import MixedGroup, counting
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
    assert group.last.topologies.asked
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
