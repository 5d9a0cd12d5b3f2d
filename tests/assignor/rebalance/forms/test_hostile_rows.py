"""Rows of one hostile member: other members keep all their tasks, and the cost stays small."""

from dataclasses import replace

import pytest

from assignor import Topology
from assignor.rebalance.forms.carried import program_fingerprint
from assignor.rebalance.leader.claims import ClaimMemory
from assignor.rebalance.leader.knowledge import LeaderInputs, LeaderMemory
from assignor.rebalance.leader.parts.rolling_topologies import without_numbers
from assignor.rebalance.leader.stalled_copies import StalledCopies
from assignor.topology import SubtopologyWaits, content_fingerprint
from assignor.topology.changes import carried_topologies
from encoding import TaskId, decode_assignment
from encoding.native import ReachedRow, SubtopologyRow
from tests.assignor.rebalance.forms.attacked import Attacked, hostile
from tests.assignor.rebalance.forms.mixed_group import counting
from tests.assignor.rebalance.groups import start
from tests.assignor.rebalance.leader.hostile import written

WAITS = SubtopologyWaits(why="its topics do not exist", refused=True)


def row(sources, versions=(9,), *, sinks=(), repartition=(), changelogs=(), copartition=()):
    return SubtopologyRow(
        versions=tuple(versions),
        source_topics=tuple(sources),
        sink_topics=tuple(sinks),
        repartition_topics=tuple(repartition),
        changelog_topics=tuple(changelogs),
        copartition_groups=tuple(copartition),
        changelog_retention_ms=(),
    )


def piped(version=1):
    """Reads `lines` and, through the repartition topic app-r-repartition, counts."""
    return (
        Topology(version=version)
        .add_source("read", topics=["lines"])
        .add_repartition_topic("r")
        .add_sink("write", topic="r", parents=["read"])
        .add_source("again", topics=["r"])
        .add_processor("count", parents=["again"])
        .add_state_store("counts", processors=["count"])
    )


REFUSED = {
    "a source topic as its repartition topic": (
        [row(["lines"], repartition=[("lines", 1)])],
        "lines is a repartition topic of it, and an external source topic of other members",
    ),
    "a repartition topic as its source topic": (
        [row(["app-r-repartition"])],
        "app-r-repartition is an external source topic of it, and a repartition topic of",
    ),
    "another count of a repartition topic": (
        [row(["app-r-repartition"], repartition=[("app-r-repartition", 1)])],
        "it makes 1 partitions of app-r-repartition, which has 4",
    ),
    "a wider upstream": (
        [row(["app-r-repartition"], repartition=[("app-r-repartition", 9)])],
        "it makes 9 partitions of app-r-repartition, which has 4",
    ),
    "an upstream that nobody knows": (
        [row(["unknown"], sinks=["app-r-repartition"])],
        "it makes an unknown number of partitions of app-r-repartition",
    ),
    "copartitioned topics that differ": (
        [row(["lines", "other"], copartition=[("lines", "other")])],
        "copartitioned topics differ in their partition counts",
    ),
    "a cycle without a count": (
        [row(["app-z"], sinks=["app-z"], repartition=[("app-z", 0)])],
        "repartition topics app-z cannot be derived",
    ),
    "too many partitions": (
        [row(["app-z"], repartition=[("app-z", 2**20)])],
        "its repartition topic app-z has 1,048,576 partitions",
    ),
    "too many tasks": (
        [row([f"app-{n}"], repartition=[(f"app-{n}", 10_000)]) for n in range(2)],
        "it adds 20,000 tasks, and at most 10,000",
    ),
    "forms of one version": (
        [row(["lines"], changelogs=[f"c{n}"]) for n in range(2)],
        "two of its subtopologies of version 9 use lines",
    ),
    "too many forms": (
        [row(["lines"], [n], changelogs=[f"c{n}"]) for n in range(1, 10)],
        "9 of its subtopologies use lines",
    ),
}


def test_a_newer_form_without_tasks_takes_none_from_the_form_before():
    group = Attacked(counting(), counting())
    before = group.lead()
    form = content_fingerprint(group.programs["m0"].subtopologies[0])
    claims = (ReachedRow(form, 0, 9),)
    assert group.lead(hostile(row(["lines", "unknown"]), reached_versions=claims)) == before
    assert group.last.waiting == ()
    assert group.lead() == before


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_rows_that_do_not_go_together_with_others_are_refused_alone(name):
    rows, why = REFUSED[name]
    group = Attacked(piped(), piped())
    before = group.lead()
    assert len(before) == 8
    for _ in range(2):
        assert group.lead(hostile(*rows)) == before
        [warning] = [w for w in group.last.warnings if "x gets no tasks" in w]
        assert why in warning
        assert group.last.waiting == ()
    assert group.lead() == before
    assert group.last.memory.topologies.appended == ()


def test_rows_beside_the_honest_ones_get_their_own_tasks_only():
    group = Attacked(piped(), piped())
    before = group.lead()
    assert group.lead(hostile(row(["other"]))) == before
    assert len(group.last.answers["x"].partitions) == 3


def test_an_impossible_version_is_refused_alone_beside_jvm_members():
    group = Attacked(counting(), counting())
    jvm = written(start("3.9", number=50), "jvm")
    both = group.lead(jvm)
    assert both == group.lead(jvm, hostile(row(["lines"]), version=0))
    assert any(
        "x gets no tasks" in w and "versions of a topology" in w for w in group.last.warnings
    )


@pytest.mark.parametrize("name", ["a", "x"])
def test_a_members_own_description_comes_before_that_of_others(name):
    new = counting(2, stores=("counts", "totals"), sources=("lines", "more"))
    group = Attacked(counting(), new)
    group.lead()
    before = group.lead()
    assert len(before) == 6
    program = program_fingerprint(carried_topologies([new], "app"))
    rows = [row(["other"], [2])]
    after = group.lead(hostile(*rows, fingerprint=program, version=2, name=name))
    assert after == before
    [dispute] = [w for w in group.last.warnings if "differently" in w]
    assert name in dispute.split(" describe ")[0]
    assert "m1" in dispute.split(" describe ")[0]


def test_a_description_of_the_leaders_own_topology_does_not_change_it():
    group = Attacked(counting(), counting())
    before = group.lead()
    own = program_fingerprint(group.programs["m0"])
    assert group.lead(hostile(row(["other"], [1]), fingerprint=own, version=1)) == before
    assert any("this leader and x describe the topology" in w for w in group.last.warnings)
    answered = {p.topic for p in group.last.answers["x"].partitions}
    assert answered <= {"other"}


def test_numbers_are_free_again_when_no_member_carries_the_subtopology():
    group = Attacked(counting(), counting(2, stores=("counts", "totals")))
    group.lead()
    before = group.lead()
    for generation in range(6):
        rows = [row([f"z{generation}-{n}"]) for n in range(256)]
        assert group.lead(hostile(*rows, fingerprint=bytes([generation]) * 8)) == before
        assert len(group.last.memory.topologies.appended) <= 1 + 2 * 256
    group.start("m2", counting(10, stores=("counts", "more")))
    group.lead()
    group.lead()
    assert len(group.last.memory.topologies.appended) == 2
    assert group.forms("lines").count(("counts", "more")) > 0


def test_a_number_that_is_used_again_has_no_knowledge_of_the_tasks_before():
    group = Attacked(counting())
    group.lead(hostile(row(["other"]), fingerprint=b"a" * 8))
    group.lead(hostile(row(["more"]), fingerprint=b"b" * 8))
    tasks = {TaskId(number, 0): 5 for number in (0, 1)}
    group.knowledge["m0"] = replace(
        group.knowledge["m0"], end_offset_sums=tasks, lags_before={"p": tasks}, waits={1: WAITS}
    )
    group.lead(hostile(row(["app-z"], repartition=[("app-z", 2)]), fingerprint=b"c" * 8))
    assert [p.source_topics for p in group.last.memory.topologies.appended] == [
        ("app-z",),
        ("more",),
    ]
    # It does not wait for what the subtopology before it waited for.
    assert len(group.last.answers["x"].partitions) == 2
    claims = ClaimMemory(given=dict.fromkeys(tasks, "x"), withheld=tasks, waited=tasks)
    kept, inputs = without_numbers(
        LeaderMemory(
            lags_before={"p": tasks},
            claims=claims,
            stalled=StalledCopies(looks=2, copies=frozenset(("b", task) for task in tasks)),
        ),
        LeaderInputs(end_offset_sums=tasks, waits={1: WAITS}),
        {1},
    )
    assert kept.stalled == StalledCopies(looks=2, copies=frozenset({("b", TaskId(0, 0))}))
    left = {TaskId(0, 0)}
    assert inputs.waits == {}
    assert inputs.end_offset_sums.keys() == kept.lags_before["p"].keys() == left
    assert kept.claims.given.keys() == kept.claims.withheld.keys() == kept.claims.waited.keys()


def test_answers_number_only_subtopologies_that_have_tasks():
    group = Attacked(counting())
    group.lead(hostile(*(row([f"z{n}"]) for n in range(256))))
    value = decode_assignment(group.last.answers["m0"].user_data)
    assert len(value.native.numbered_by) == 1


def test_a_claim_of_a_reached_version_does_not_stop_other_members():
    group = Attacked(counting(), counting())
    before = group.lead()
    form = content_fingerprint(group.programs["m0"].subtopologies[0])
    claim = ReachedRow(form, 2**62 - 1, 2**31 - 1)
    for _ in range(2):
        blob = hostile(row(["more"]), version=2**31 - 1, reached_versions=(claim,))
        assert group.lead(blob) == before
        assert group.last.answers["m1"].assignment.native.reached_versions == ()
    assert group.lead() == before


def test_the_groups_record_counts_rows_numbers_and_reached_versions():
    group = Attacked(*[counting()] * 3)
    group.lead()
    rows = [row([f"z{n}"], [2]) for n in range(256)]
    claims = tuple(ReachedRow(n.to_bytes(8, "big"), 0, 2) for n in range(256))
    before = sum(len(answer.user_data) for answer in group.last.answers.values())
    group.lead(hostile(*rows, version=2, reached_versions=claims))
    after = sum(len(answer.user_data) for answer in group.last.answers.values())
    assert after < before + 4 * 100
