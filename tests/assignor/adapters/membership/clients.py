"""A membership without a client library: its port is a fake that records requests."""

from types import SimpleNamespace
from uuid import UUID

from assignor.adapters.membership import member_options, new_driver
from tests.assignor.rebalance.groups import TOPOLOGY


class FakeClient:
    """A client port: counts rejoins, keeps timers until a test fires them."""

    def __init__(self, *, instance_id=None):
        self.rejoins = 0
        self.delays_s = []
        self.pending = []
        self.busy = self.lost = False
        self.owned = ()
        self.current_generation = 1
        self.own_id = "a"
        self.instance_id = instance_id

    def request_rejoin(self):
        self.rejoins += 1

    def is_rebalancing(self):
        return self.busy

    def generation(self):
        return -1 if self.lost else self.current_generation

    def member_id(self):
        return self.own_id

    def owned_partitions(self):
        return self.owned

    def group_instance_id(self):
        return self.instance_id

    def start_timer(self, delay_s, call):
        self.delays_s.append(delay_s)
        self.pending.append(call)
        return SimpleNamespace(cancel=lambda: call in self.pending and self.pending.remove(call))

    def fire(self):
        """Fire all timers that were started so far."""
        for call in tuple(self.pending):
            self.pending.remove(call)
            call()


def connected(*, number=1, topology=TOPOLOGY, client=None, **options):
    """A membership with a fake client, the client, and the observed events."""
    seen = []
    keywords = {"process_id": UUID(int=number), "observer": seen.append} | options
    membership = new_driver(member_options(topology, "app", keywords))
    client = client or FakeClient()
    membership.connect(client)
    return membership, client, seen
