"""A member that keeps claiming a partition whose form changes does not keep it from others."""

from assignor.rebalance.forms.carried import program_fingerprint, rows_of
from assignor.rebalance.leader.claims import PATIENCE
from assignor.topology.changes import carried_topologies
from encoding import RUNNING, TaskId, TopicPartition
from tests.assignor.rebalance.forms.attacked import Attacked
from tests.assignor.rebalance.forms.mixed_group import counting
from tests.assignor.rebalance.groups import start
from tests.assignor.rebalance.leader.hostile import written

OLD, NEW = counting(), counting(2, stores=("counts", "more"))
ALL = tuple(TopicPartition("lines", partition) for partition in range(4))


def stubborn(generation):
    """A member with the old program that owns and runs all partitions, in every generation."""
    program = carried_topologies([OLD], "app")
    return written(
        start("native", number=55),
        "z",
        owned=ALL,
        sums={TaskId(0, partition): RUNNING for partition in range(4)},
        native={
            "fingerprint": program_fingerprint(program),
            "topology_version": 1,
            "owned_generation": generation,
            "carried": rows_of(program),
            "owned_partitions": (("lines", 0, 4),),
        },
    )


def test_a_claim_ends_although_the_partition_is_to_run_in_another_form():
    """Claims are checked again after the forms are selected: they are of tasks of other numbers."""
    group = Attacked(NEW)
    group.generation = 5
    for _ in range(PATIENCE):
        group.lead(stubborn(group.generation))
        assert group.last.withheld == {"m0": ALL[2:]}
        assert group.last.answers["z"].partitions == ALL[:2]
    for _ in range(PATIENCE):
        group.lead(stubborn(group.generation))
        assert group.last.answers["m0"].partitions == ALL[2:]
        assert group.last.answers["z"].partitions == ALL[:2]
        assert group.last.withheld == {}
