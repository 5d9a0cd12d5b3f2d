"""A hostile subscription, as fields or as bytes, does not harm the other members."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assignor.rebalance.leader import boundary
from assignor.rebalance.leader.parts import routing_views
from encoding import EncodeError, HostInfo, TaskOffsetSums, decode_subscription, encode_subscription
from fuzz import led_groups
from fuzz.led_groups import TASKS, lead_any_group, led_seeds
from fuzz.promises import Finding
from tests.encoding.native_strategies import native_subscriptions
from tests.encoding.strategies import subscriptions
from tests.nightly import examples

SEEDS = [seed.data for seed in led_seeds()]
heads = st.binary(min_size=4, max_size=4)
sums = st.dictionaries(
    st.sampled_from(sorted(TASKS)),
    st.sampled_from([-(2**63), -4, -3, -2, 0, 5, 2**62, 2**63 - 1]),
).map(TaskOffsetSums.from_mapping)
endpoints = st.none() | st.sampled_from(["h:80", "h", "h:99999999", "é:1", ":", "x" * 9_000])
quick = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


@st.composite
def written(draw):
    value = draw(subscriptions() | native_subscriptions())
    if draw(st.booleans()):
        value = replace(value, task_offset_sums=draw(sums), user_endpoint=draw(endpoints))
    try:
        return encode_subscription(value)
    except EncodeError:
        return b""


@quick
@given(heads, written())
def test_any_values_in_the_fields_of_one_member(head, blob):
    lead_any_group(head + blob)


@quick
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    st.integers(0, 400),
)
def test_any_bytes_of_one_member(seed, changes, cut):
    data = bytearray(seed)
    for place, value in changes:
        data[place % len(data)] = value
    lead_any_group(bytes(data[: max(4, len(data) - cut % 50)]))


def hostile(**fields):
    value = decode_subscription(SEEDS[0][4:])
    return bytes(4) + encode_subscription(replace(value, **fields))


def trusting(endpoint):
    host, _, port = endpoint.rpartition(":")
    return HostInfo(host, int(port))


def test_an_epoch_that_passes_the_boundary_is_a_finding(monkeypatch):
    native = decode_subscription(SEEDS[0][4:]).native
    data = hostile(native=replace(native, view_epoch=2**63 - 1))
    lead_any_group(data)
    monkeypatch.setattr(boundary, "_native", lambda value, _: value)
    monkeypatch.setattr(routing_views, "HIGHEST_REPORTED", 2**64)
    with pytest.raises(Finding, match=r"the leader does not fail.*member x"):
        lead_any_group(data)


@pytest.mark.parametrize("endpoint", ["h:" + "1" * 5_000, "h:x"])
def test_an_endpoint_that_passes_the_boundary_is_a_finding(monkeypatch, endpoint):
    data = hostile(user_endpoint=endpoint)
    lead_any_group(data)
    monkeypatch.setattr(boundary, "parse_endpoint", trusting)
    monkeypatch.setattr(routing_views, "parse_endpoint", trusting)
    with pytest.raises(Finding, match=r"the leader does not fail.*member x"):
        lead_any_group(data)


def test_a_leader_that_gives_what_another_owns_is_a_finding(monkeypatch):
    both = led_groups.assign_group

    def doubled(*arguments, **options):
        answer = both(*arguments, **options)
        answers = dict(answer.answers)
        answers["x"] = replace(answers["x"], partitions=answers["m0"].partitions)
        return replace(answer, answers=answers)

    monkeypatch.setattr(led_groups, "assign_group", doubled)
    with pytest.raises(Finding, match="goes to one member"):
        lead_any_group(SEEDS[0])
