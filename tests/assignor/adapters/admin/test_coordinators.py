"""Requests about many groups: each group has its own answer."""

import asyncio
from types import SimpleNamespace

import pytest
from kafka.errors import GroupAuthorizationFailedError

from assignor.adapters.admin import Admin, BrokerError, NotAuthorized, Target
from assignor.adapters.admin.coordinators import Row, ask_coordinators

DENIED, MOVED = 30, 16


class FakeAdmin(Admin):
    """Two coordinators; a lookup of `hidden` is denied."""

    def __init__(self):
        self.target = Target(servers=("b:1",), timeout_ms=60_000)
        self.again()
        manager = SimpleNamespace(cluster=SimpleNamespace(_coordinators={}))
        self.client = SimpleNamespace(_manager=manager, _find_coordinator_ids=self._find)

    async def _find(self, group_ids):
        if "hidden" in group_ids:
            raise GroupAuthorizationFailedError
        return {group_id: len(group_id) % 2 for group_id in group_ids}

    def _once(self, question, left_s):
        return asyncio.run(question(self.client))


def test_one_request_goes_to_each_coordinator():
    asked = []

    async def ask(_, node, own):
        asked.append((node, own))
        return [Row(group_id, 0, group_id.upper()) for group_id in own]

    assert ask_coordinators(FakeAdmin(), "see {}", ["a", "b", "cc"], ask) == {
        "a": "A",
        "b": "B",
        "cc": "CC",
    }
    assert asked == [(0, ["cc"]), (1, ["a", "b"])]


@pytest.mark.usefixtures("clock")
def test_a_group_that_is_denied_hides_no_other_and_one_that_moved_is_asked_about_again():
    asked = []

    async def ask(_, node, own):
        asked.append(own)
        is_first = len(asked) == 1
        codes = {"b": DENIED, "c": MOVED if is_first else 0}
        return [
            Row(group_id, codes.get(group_id, 0), "found") for group_id in own if group_id != "e"
        ]

    found = ask_coordinators(FakeAdmin(), "see {}", ["a", "b", "c", "e"], ask)
    assert (found["a"], found["c"]) == ("found", "found")
    assert str(found["b"]).startswith("not authorized to see b (GROUP_AUTHORIZATION_FAILED)")
    assert isinstance(found["e"], BrokerError)
    assert asked == [["a", "b", "c", "e"], ["c", "e"]]


def test_a_coordinator_that_may_not_be_looked_up_hides_no_group():
    async def ask(_, node, own):
        return [Row(group_id, 0, "found") for group_id in own]

    found = ask_coordinators(FakeAdmin(), "see {}", ["a", "hidden"], ask)
    assert found["a"] == "found"
    assert isinstance(found["hidden"], NotAuthorized)
