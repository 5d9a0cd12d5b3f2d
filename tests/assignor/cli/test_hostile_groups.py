"""Groups in which one member writes anything: the others are shown as before, printable."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.inspection.values import ClusterFacts, TopicFacts
from encoding import NativeAssignment, NativeSubscription, TaskId, TopicPartition
from fuzz.inspected_groups import FORGED, check_group
from tests.assignor.inspection.described_groups import group_of, member
from tests.nightly import examples

T00, T01, T10 = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)
HONEST = (
    member("honest", active=[T00], user_endpoint="h:1", rack="r1", client_tags={"zone": "z"}),
    member("second", active=[T10], standby=[T00], sums={T00: 7}),
)
PLAIN = st.text(max_size=20)
# Terminal or rich markup, a line break or enough columns for one, then a forged line.
TEXTS = st.one_of(
    PLAIN,
    st.sampled_from(
        ["[/x]", "[red]", "[fe80::1]:80", "app-honest", "\ud800", "é" * 300, ":warning:"]
    ),
    st.builds(
        "x{}{}{}".format,
        st.sampled_from(["\x1b[2J", "\x1b]0;t\x07", "\u202e", "\x9b1m", "[red]", ""]),
        st.sampled_from(["\n", "\r", "\x85", "\u2028", "\v", " " * 60, "-" * 158 + " ", " "]),
        st.just(f"{FORGED} all is lost"),
    ),
)
UTF8 = TEXTS.filter(str.isascii) | st.sampled_from(["\u202e\u2066x", "\x85x\u2028y", "ä\u200b"])
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.dictionaries(st.sampled_from([T00, T01, T10]), INT64, max_size=3)


@st.composite
def hostile_members(draw):
    """A member with arbitrary values in every field of Kafka's layouts."""
    native = draw(st.none() | st.builds(NativeSubscription, rack=UTF8, pinned_version=st.just(3)))
    answer = {"next_rebalance_ms": draw(INT64), "error_code": draw(INT32)}
    if draw(st.booleans()):
        warm = draw(st.sampled_from([(), (T00,), (T10, T01)]))
        answer["native"] = NativeAssignment(
            warmup_tasks=warm, next_version=draw(st.integers(0, 200))
        )
    made = member(
        "h",
        process=draw(st.integers(2**100, 2**128 - 1)),
        active=draw(st.sampled_from([[], [T01], [TaskId(0, 0, "x\n" + FORGED)]])),
        standby=draw(st.sampled_from([[], [T00, T10]])),
        inputs=draw(UTF8),
        topics=tuple(draw(st.lists(UTF8, max_size=3))),
        rack=draw(st.none() | UTF8),
        sums=draw(OFFSETS),
        user_endpoint=draw(st.none() | UTF8 | st.integers(0, 4).map(lambda n: f"h:{'9' * 10**n}")),
        client_tags=draw(st.dictionaries(UTF8, UTF8, max_size=2)),
        native=native,
        answer=answer,
    )
    return replace(
        made,
        member_id=f"x{draw(TEXTS)}",
        client_id=f"x{draw(TEXTS)}",
        client_host=f"x{draw(TEXTS)}",
        instance_id=draw(st.none() | TEXTS.map("x{}".format)),
    )


@st.composite
def mutated(draw, data):
    """Bytes with some of them changed, cut out or put in."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = start + draw(st.sampled_from([0, 1, 2, 4, 8]))
        data = data[:start] + draw(st.binary(max_size=8)) + data[end:]
    return data


@st.composite
def facts(draw):
    """Facts of a cluster with arbitrary topic names."""
    names = ["in", *draw(st.lists(TEXTS.map("app-{}-changelog".format), max_size=2))]
    return ClusterFacts(
        topics={name: TopicFacts(partitions=2) for name in names},
        committed={TopicPartition("in", 0): draw(INT64)},
        end_offsets={TopicPartition(name, 0): draw(INT64) for name in names},
        record_limit=draw(st.none() | st.integers(0, 2**31)),
        unknown=tuple(draw(st.lists(TEXTS.map("x{}".format), max_size=1))),
    )


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(hostile=hostile_members(), facts=facts(), protocol=st.sampled_from(["stream", "range"]))
def test_a_member_with_any_values_forges_no_line_and_hides_no_member(hostile, facts, protocol):
    group = group_of(*HONEST, hostile, protocol_name=protocol)
    check_group(group, facts, honest=["honest", "second"])


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data())
def test_a_member_with_any_bytes_forges_no_line_and_hides_no_member(data):
    made = member("h", process=2**99, active=[T01], user_endpoint="h:2", client_tags={"a": "b"})
    hostile = replace(
        made,
        metadata=data.draw(mutated(made.metadata)),
        assignment=data.draw(mutated(made.assignment)),
    )
    check_group(group_of(*HONEST, hostile), honest=["honest", "second"])


@settings(max_examples=examples(20), deadline=None)
@given(name=TEXTS, state=TEXTS, kind=TEXTS, protocol=TEXTS)
def test_a_group_may_be_called_anything(name, state, kind, protocol):
    group = group_of(
        *HONEST, group_id=f"x{name}", state=state, protocol_type=kind, protocol_name=protocol
    )
    check_group(group)
