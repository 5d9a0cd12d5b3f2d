"""What the supervised clients of a process log while no broker can be reached: two lines."""

import pytest

from assignor.adapters.rebootstrap.supervisor import RebootstrapSupervisor
from probing.rebootstrap import ConnectionLost, MetadataReceived, RebootstrapConfig


class Supervisor(RebootstrapSupervisor):
    """A supervisor of a client that has one node."""

    def __init__(self, servers):
        super().__init__(RebootstrapConfig(), None, servers)
        self._know(["a:1"])
        self.now_ms = 0

    def _close_all(self):
        """There is no connection."""

    def _give_up(self, node, why):
        """As above."""

    def _look_up(self):
        """The servers are those of before."""

    def _set_timer(self, at_ms):
        """Time does not pass."""

    def lose(self):
        """Rebootstrap: the only node is in back-off."""
        before = len(self.rebootstraps)
        while len(self.rebootstraps) == before:
            self.now_ms += 60_000
            self._found(["a:1"])
            self._see(ConnectionLost(now_ms=self.now_ms, node="a:1", back_off_ms=1_000_000))

    def find(self):
        self.now_ms += 1
        self._see(MetadataReceived(now_ms=self.now_ms, nodes=("a:1",), error_code=0))


@pytest.fixture
def lines(caplog):
    caplog.set_level("INFO")

    def taken():
        found = [(each.levelname, each.getMessage().split(",")[0]) for each in caplog.records]
        caplog.clear()
        return found

    return taken


BEGIN = ("WARNING", "rebootstrap from s")
END = ("INFO", "the brokers of s can be reached again")


def test_an_outage_of_all_clients_is_two_lines(lines):
    """Clients have their servers in different forms: the confluent-kafka member's is a list."""
    first, second = Supervisor("s"), Supervisor(["PLAINTEXT://s"])
    for _ in range(2):
        for client in (first, second, first, second, first):
            client.lose()
        assert lines() == [BEGIN]
        first.find()
        first.find()
        assert lines() == []
        second.find()
        assert lines() == [END]


def test_a_client_that_is_closed_or_dropped_has_no_outage(lines):
    first, second, third = (Supervisor("s") for _ in range(3))
    for client in (first, second, third):
        client.lose()
    first._end_outage()
    del third, client
    assert lines() == [BEGIN]
    second.find()
    assert lines() == [END]


def test_clusters_have_their_own_lines(lines):
    first, second = Supervisor("s"), Supervisor("t")
    first.lose()
    second.lose()
    assert lines() == [BEGIN, ("WARNING", "rebootstrap from t")]
