"""A coordinator shows no bytes of members during a rebalance, so nothing is decided from them."""

from types import SimpleNamespace

import pytest

from assignor.adapters.admin import BrokerError, describe_settled, groups, settled_members
from assignor.cli.features import reached_places
from assignor.inspection import DescribedGroup, DescribedMember

ADMIN = SimpleNamespace(target=SimpleNamespace(timeout_ms=10_000))
MEMBER = DescribedMember(member_id="m", client_id="m")


@pytest.fixture
def group(monkeypatch):
    """Return a list of the states that the coordinator reports, one per request; then the last."""
    states, now = [], [0.0]

    def describe(_, group_id):
        state = states.pop(0) if len(states) > 1 else states[0]
        return DescribedGroup(group_id=group_id, state=state, members=(MEMBER,))

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(groups, "describe_group", describe)
    monkeypatch.setattr(groups, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return states


def test_members_are_read_after_the_rebalance(group):
    group += ["PreparingRebalance", "CompletingRebalance", "Stable"]
    assert settled_members(ADMIN, "g") == (MEMBER,)
    assert group == ["Stable"]


def test_a_rebalance_that_does_not_end_is_an_error_after_half_the_time_limit(group):
    group += ["PreparingRebalance"]
    with pytest.raises(BrokerError, match=r"group g is still in a rebalance \(.*\) after 5 s"):
        settled_members(ADMIN, "g")
    assert describe_settled(ADMIN, "g").state == "PreparingRebalance"


def test_the_memory_of_a_group_in_a_rebalance_is_not_called_empty(group, monkeypatch):
    group += ["CompletingRebalance"]
    topic = SimpleNamespace(whole=lambda: None)
    monkeypatch.setattr("assignor.adapters.admin.ReachedTopic", lambda *_: topic)
    with pytest.raises(BrokerError, match="still in a rebalance"):
        reached_places.GroupPlace(ADMIN, "g").memory()
