"""Every client's port and assignor keep the driver's contract, also an invented client's."""

from types import SimpleNamespace

import pytest

from assignor.adapters import membership
from tests.assignor.adapters.contract.ports import invented
from tests.assignor.adapters.contract.ports.checks import CLIENTS, broken

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("clock")]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_keeps_the_contract_of_the_driver(client):
    assert broken(client) == []


class WithoutGeneration(invented.Port):
    """A port that knows no generation before the first join, and takes it for the first one."""

    def __init__(self, consumer):
        super().__init__(consumer)
        self.generation = lambda: max(1, consumer.generation)


class WithoutCancel(invented.Port):
    """A port whose timers cannot be cancelled."""

    def start_timer(self, delay_s, call):
        membership.in_a_thread(delay_s, call)
        return SimpleNamespace(cancel=lambda: None)


class NeverRebalancing(invented.Port):
    """A port that knows of no rebalance."""

    def __init__(self, consumer):
        super().__init__(consumer)
        self.is_rebalancing = lambda: False


@pytest.mark.parametrize(
    ("where", "name", "fault", "sentence"),
    [
        (invented, "Port", WithoutGeneration, "the first join has generation 1"),
        (invented, "Port", WithoutCancel, "a cancelled timer has called"),
        (membership, "readable_metadata", lambda data, _: data, "ended: {"),
        (invented.Port, "request_rejoin", lambda _: None, "ended: {}"),
        (invented, "Port", NeverRebalancing, "no rebalance is running while the leader decides"),
        (invented, "TaskAssignmentError", ZeroDivisionError, "TaskAssignmentError('planted')"),
    ],
)
def test_a_client_that_breaks_the_contract_is_found(monkeypatch, where, name, fault, sentence):
    monkeypatch.setattr("system_tests.support.client_members.LIMIT_S", 10.0)
    monkeypatch.setattr(where, name, fault)
    assert sentence in "; ".join(broken("invented"))
