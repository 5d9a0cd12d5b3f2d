"""Inspection of streams groups: moves, lags, why a group is not ready, findings."""

from dataclasses import replace

import pytest
from rich.console import Console

from assignor.cli.inspect.all_groups import render_groups
from assignor.cli.inspect.document import document_of
from assignor.cli.inspect.streams_groups import TASKS_SHOWN
from assignor.cli.inspect.text import render_group
from assignor.inspection import (
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    look_at_streams_group,
    problem_of,
)
from encoding import TopicPartition
from tests.assignor.inspection.streams_groups import ALL, PARTS, SIZES, facts, group, member, tasks


def text_of(look):
    console = Console(width=110, record=True, force_terminal=False)
    console.print(render_group(look, width=110, now_ms=0, tasks=True, cut=False))
    return " ".join(console.export_text().split())


def test_a_stable_group_has_no_findings_and_the_lag_of_all_inputs():
    look = look_at_streams_group(group(member("a", "0_0 1_0"), member("b", "0_1 1_1")), facts())
    assert look.findings == ()
    assert look.lag == 4 * 4
    assert look.streams_group.lags == {"id-a": 8, "id-b": 8}
    text = text_of(look)
    assert "group g with 2 members, Stable; streams protocol (KIP-1071)" in text
    assert "no task moves" in text
    assert "g-counts-changelog (2)" in text


def test_a_lag_without_a_commit_is_counted_from_the_first_offset():
    committed = {TopicPartition("in", 1): (-1, -1)}
    look = look_at_streams_group(group(member("a", ALL)), facts(committed=committed))
    assert {(row.committed, row.leader_epoch, row.lag) for row in look.streams_group.offsets} == {
        (None, None, 8)
    }
    assert [finding.kind for finding in look.findings] == ["uncommitted"]


def test_a_committed_offset_beyond_the_end_is_a_finding_and_no_negative_lag():
    committed = dict.fromkeys(facts().committed, (9, 0)) | {TopicPartition("in", 1): (12, 0)}
    look = look_at_streams_group(group(member("a", ALL)), facts(committed=committed))
    assert look.lag == 0
    [finding] = look.findings
    assert finding.kind == "beyond-end"
    assert finding.sentence.startswith("in-1 (12, end 9) has a committed offset beyond its end")


def test_threads_of_a_process_have_its_short_id():
    process = "0123456789abcdef"
    threads = [
        replace(member("a", ""), member_id=f"id-{number}", process_id=process)
        for number in range(3)
    ]
    text = text_of(look_at_streams_group(group(*threads), facts()))
    assert text.count("01234567 ") == len(threads)


def test_a_group_that_waits_names_a_missing_source_topic_once():
    look = look_at_streams_group(
        group(member("a", ""), state="NotReady"),
        facts(partitions={name: size for name, size in SIZES.items() if name != "in"}),
    )
    assert [finding.kind for finding in look.findings] == ["not-ready"]


def test_a_partition_that_a_smaller_topic_lacks_is_not_read():
    parts = (StreamsSubtopology(subtopology_id="0", source_topics=("in", "small")),)
    look = look_at_streams_group(
        group(member("a", "0_0 0_1"), subtopologies=parts), facts(partitions={"in": 2, "small": 1})
    )
    read = [tuple(row.partition) for row in look.streams_group.offsets]
    assert read == [("in", 0), ("in", 1), ("small", 0)]


def test_a_task_that_moves_names_both_members():
    look = look_at_streams_group(
        group(member("a", ALL, "0_0 1_0"), member("b", "", "0_1 1_1"), state="Reconciling"), facts()
    )
    assert look.streams_group.to_start["id-b"] == tasks("0_1 1_1")
    assert look.streams_group.to_stop["id-a"] == tasks("0_1 1_1")
    [finding] = look.findings
    assert finding.kind == "not-owned"
    assert finding.sentence == "task 0_1, 1_1 moves to b when a has stopped it"
    assert "2 active tasks wait to move" in text_of(look)


NOT_READY = {
    "no topology": (
        group(member("a", ""), state="NotReady", topology_epoch=None, subtopologies=None),
        facts(),
        "no member has sent the topology",
    ),
    "source": (
        group(member("a", ""), state="NotReady"),
        facts(partitions={}),
        "source topic in of subtopology 0 does not exist: create it",
    ),
    "internal": (
        group(member("a", ""), state="NotReady"),
        facts(partitions={"in": 2}),
        "internal topic g-counts-repartition, g-counts-changelog of subtopology 1 does not exist",
    ),
    "sizes": (
        group(
            member("a", ""),
            state="NotReady",
            subtopologies=(StreamsSubtopology(subtopology_id="0", source_topics=("in", "other")),),
        ),
        facts(partitions={"in": 2, "other": 3}),
        "have different partition counts (in 2, other 3)",
    ),
    "other": (group(member("a", ""), state="NotReady"), facts(), "the members' logs name"),
    "assigning": (
        group(member("a", ""), state="Assigning", group_epoch=4),
        facts(),
        "the target assignment of epoch 4 is not computed yet",
    ),
}


@pytest.mark.parametrize("case", NOT_READY)
def test_the_reason_why_nothing_is_assigned_comes_first(case):
    described, known, sentence = NOT_READY[case]
    look = look_at_streams_group(described, known)
    assert look.findings[0].kind == "not-ready"
    assert sentence in look.findings[0].sentence


FINDINGS = {
    "owned-twice": (group(member("a", ALL), member("b", "0_0")), facts(), "task 0_0 runs on more"),
    "unassigned": (group(member("a", "0_0 0_1 1_0")), facts(), "task 1_1 is in no member's"),
    "topology-differs": (
        group(member("a", ALL, topology_epoch=2)),
        facts(),
        "a (2) has another topology epoch than the group (0)",
    ),
    "source-topic": (
        group(member("a", ALL)),
        facts(partitions={name: size for name, size in SIZES.items() if name != "in"}),
        "source topic in does not exist, or you may not describe it",
    ),
    "internal-topic": (
        group(member("a", ALL)),
        facts(partitions=SIZES | {"g-counts-changelog": 3}),
        "has 3 partitions and needs 2",
    ),
    "partition-counts": (
        group(member("a", ALL), state="Empty"),
        facts(partitions=SIZES | {"g-counts-repartition": 4}),
        "changelogs have other numbers: g-counts-changelog (2)",
    ),
    "classic-member": (group(member("a", ALL, is_classic=True)), facts(), "a uses the classic"),
    "not-told": (group(member("a", ALL)), facts(unknown=("not authorized",)), "not authorized"),
}


@pytest.mark.parametrize("kind", FINDINGS)
def test_every_finding(kind):
    described, known, sentence = FINDINGS[kind]
    look = look_at_streams_group(described, known)
    found = {finding.kind: finding.sentence for finding in look.findings}
    assert sentence in found[kind]


def test_no_task_of_a_group_runs_while_all_its_static_members_are_stopped():
    gone = [
        replace(member(name, "", target), member_epoch=-2)
        for name, target in (("a", "0_0 1_0"), ("b", "0_1 1_1"))
    ]
    look = look_at_streams_group(group(*gone, state="Reconciling"), facts())
    [finding] = look.findings
    assert finding.kind == "stopped-member"
    assert finding.sentence.startswith("static members that stopped (epoch -2): a, b; their tasks")
    assert "(45 s by default)" in finding.sentence


def test_tasks_of_a_huge_topology_are_counted_and_not_listed(monkeypatch):
    made = []

    def counted_task(*words):
        made.append(words)
        return StreamsTask(*words)

    monkeypatch.setattr("assignor.inspection.streams_groups.findings.StreamsTask", counted_task)
    parts = tuple(
        StreamsSubtopology(subtopology_id=str(n), source_topics=("in",)) for n in range(20)
    )
    look = look_at_streams_group(
        group(member("a", "0_0 0_2 1_9999"), subtopologies=parts), facts(partitions={"in": 10_000})
    )
    [sentence] = [found.sentence for found in look.findings if found.kind == "unassigned"]
    assert sentence == (
        "task 0_1, 0_3, 0_4, 0_5, 0_6 and 199992 more is in no member's target assignment"
    )
    assert len(made) < 2 * len(parts)


def test_the_inputs_of_a_subtopology_are_computed_once_for_all_members(monkeypatch):
    asked = []
    inputs = StreamsSubtopology.input_topics.fget
    monkeypatch.setattr(
        StreamsSubtopology, "input_topics", property(lambda part: asked.append(0) or inputs(part))
    )
    members = [member(f"m{n}", f"0_{n}") for n in range(200)]
    look = look_at_streams_group(group(*members), facts(partitions=SIZES | {"in": 200}))
    text_of(look)
    assert len(asked) < 10 * len(PARTS)


def test_the_rows_of_tasks_are_limited_and_the_others_are_counted():
    numbers = range(TASKS_SHOWN + 3)
    wide = member("a", " ".join(f"0_{number}" for number in numbers))
    look = look_at_streams_group(group(wide), facts(partitions=SIZES | {"in": len(numbers)}))
    words = text_of(look).split()
    assert f"0_{TASKS_SHOWN - 1}" in words
    assert f"0_{TASKS_SHOWN}" not in words
    assert "3 more tasks not shown; --format json lists all, by member" in " ".join(words)
    few_tasks = look_at_streams_group(group(member("a", ALL)), facts())
    assert "not shown" not in text_of(few_tasks)


def test_a_row_of_all_groups_has_members_epoch_and_moves():
    look = look_at_streams_group(
        group(member("a", ALL, "0_0 1_0"), member("b", "", "0_1 1_1"), state="Reconciling"), facts()
    )
    console = Console(width=200, record=True, force_terminal=False)
    console.print(render_groups([look]))
    [_, row] = console.export_text().strip().splitlines()
    assert " ".join(row.split()) == (
        "g Reconciling KIP-1071 2 16 epoch 3 task 0_1, 1_1 moves to b when a has stopped it"
    )


def test_an_empty_and_an_unknown_group():
    empty = look_at_streams_group(group(state="Empty"), facts())
    assert empty.summary.startswith("group g has no members now; its state is Empty")
    assert (empty.findings, empty.lag) == ((), 16), "of all partitions, as no member reads any"
    dead = look_at_streams_group(
        group(state="Dead", group_epoch=-1, topology_epoch=None, subtopologies=None)
    )
    assert dead.summary == "group g is not known to the cluster, or was deleted"
    assert "epochs" not in text_of(dead)


def test_a_narrow_terminal_has_whole_columns():
    look = look_at_streams_group(group(member("a", "0_0 1_0"), member("b", "0_1 1_1")), facts())
    console = Console(width=40, record=True, force_terminal=False)
    console.print(render_group(look, width=40, now_ms=0, tasks=False, cut=True))
    lines = console.export_text().splitlines()
    assert [line.split() for line in lines if line.startswith(("client", "a ", "b "))] == [
        ["client", "active", "standby", "lag"],
        ["a", "2", "0", "8"],
        ["b", "2", "0", "8"],
    ]


def test_an_empty_group_names_the_source_topic_that_its_members_missed():
    sizes = {name: size for name, size in SIZES.items() if name != "in"}
    look = look_at_streams_group(group(state="Empty"), facts(partitions=sizes))
    [finding] = look.findings
    assert finding.kind == "source-topic"
    assert finding.sentence.startswith("source topic in does not exist")
    grown = look_at_streams_group(
        group(state="Empty"), facts(partitions=SIZES | {"g-counts-repartition": 4})
    )
    assert [finding.kind for finding in grown.findings] == [
        "internal-topic",
        "partition-counts",
        "uncommitted",
    ]


def test_subtopologies_are_ordered_as_numbers_and_foreign_ids_are_printable():
    mixed = tasks("10_0 2_1 2_0 x_0")
    assert list(map(str, sorted(mixed))) == ["2_0", "2_1", "10_0", "x_0"]
    hostile = replace(member("a", ALL), client_id="\x1b[2J", endpoint="\u202eevil:1", rack="r\n")
    look = look_at_streams_group(group(hostile), facts())
    assert "\x1b" not in text_of(look)
    assert document_of(look)["streams_group"]["members"][0]["client_id"] == "\x1b[2J"


IMPOSSIBLE = {
    "assignment epoch 9 above group epoch 3": group(member("a", ALL), assignment_epoch=9),
    "assignment epoch -7": group(member("a", ALL), assignment_epoch=-7),
    "group epoch 1 and the member epoch of a (3)": group(
        member("a", ALL), group_epoch=1, assignment_epoch=1
    ),
    "group epoch 3 and the member epoch of a (-3)": group(
        replace(member("a", ALL), member_epoch=-3)
    ),
    "topology epoch -1": group(member("a", ALL, topology_epoch=-1), topology_epoch=-1),
    "a negative topology epoch of a (-5)": group(member("a", ALL, topology_epoch=-5)),
    "task 0_0, 0_1 active in the target assignments of two members": group(
        member("a", ALL), member("b", "", "0_1 0_0")
    ),
    "task 0_0 active and a copy in the current assignment of a": group(
        replace(member("a", ALL), current=StreamsTasks(active=tasks(ALL), standby=tasks("0_0")))
    ),
    "task 1_0 active and a copy in the target assignment of a": group(
        replace(member("a", ALL), target=StreamsTasks(active=tasks(ALL), warmup=tasks("1_0")))
    ),
    "state Stable and no members": group(),
    "state Empty and 1 members": group(member("a", ALL), state="Empty"),
    "state Stable and active tasks, but no topology": group(
        member("a", ALL), topology_epoch=None, subtopologies=None
    ),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_state_that_no_coordinator_has_is_a_finding(what):
    found = look_at_streams_group(IMPOSSIBLE[what], facts()).findings
    impossible = [finding.sentence for finding in found if finding.kind == "impossible"]
    assert impossible[0].startswith(f"no coordinator has a group with {what}: inspect it again")
    assert len(impossible) == 1 + (what == "topology epoch -1")
    leaving = replace(member("a", ALL), member_epoch=-2)  # a static member that comes back
    dead = group(state="Dead", group_epoch=-1, assignment_epoch=-1)
    for fine in (group(state="Empty"), dead, group(leaving)):
        kinds = {finding.kind for finding in look_at_streams_group(fine, facts()).findings}
        assert "impossible" not in kinds


def test_tasks_are_compared_by_their_numbers_only_a_few_times(monkeypatch):
    """Sorting with the comparison of dataclasses took most of the time of a large group."""
    compared = []
    before = StreamsTask.__lt__
    monkeypatch.setattr(StreamsTask, "__lt__", lambda a, b: compared.append(a) or before(a, b))
    many = " ".join(f"0_{number}" for number in range(3000))
    look = look_at_streams_group(
        group(member("a", many), subtopologies=PARTS[:1]), facts(partitions={"in": 3000})
    )
    document_of(look)
    problem_of(look)
    assert len(compared) < 100
