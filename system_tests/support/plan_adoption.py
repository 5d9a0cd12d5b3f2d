"""A leader takes the plan of another job, with each client and protocol.

`python -m system_tests.support.plan_adoption` prints the table.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from assignor import ConfigError, OffloadedPlans, PlanStore, high_availability
from assignor.adapters.aiokafka import StreamsAssignor
from assignor.stores import plan_for
from system_tests.broker import BrokerConfig, RunningBroker, running_broker
from system_tests.coordinator import GroupState
from system_tests.support.client_members import GROUP, TOPOLOGY, MemberGroup

TASKS: Final = 12
MOST_REBALANCES: Final = 5
GROUPS: Final = (
    ("kafka-python", "eager"),
    ("kafka-python", "cooperative"),
    ("aiokafka", "eager"),
    ("confluent", "eager"),
    ("confluent", "cooperative"),
)
"""Client and protocol; aiokafka has no cooperative protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What became of a plan.

    Attributes:
        client, protocol, has_stores: of all members.
        planned: tasks that the plan moves.
        rebalances: until each member ran what the plan gives it; None: never.
    """

    client: str
    protocol: str
    has_stores: bool
    planned: int
    rebalances: int | None

    def __str__(self) -> str:
        """Return a row of the table."""
        taken = "never" if self.rebalances is None else f"after {self.rebalances}"
        stores = "TaskStores" if self.has_stores else "none"
        return f"{self.client:13} {self.protocol:12} {stores:11} {self.planned:8}  {taken}"


HEADER: Final = f"{'client':13} {'protocol':12} {'stores':11} {'to move':>8}  taken, rebalances"


def adopt_plan(client: str, protocol: str, *, has_stores: bool, directory: Path) -> Adoption:
    """Run two members, plan what the leader asks for, and count rebalances until it is taken.

    Args:
        client: of all members, one of `CLIENTS`.
        protocol: of all members.
        has_stores: of all members; see `ClientMember`.
        directory: of the plan store.
    """
    store = PlanStore(directory)
    with running_broker(BrokerConfig(topics={"words": TASKS})) as broker:
        group = MemberGroup(
            client,
            broker.bootstrap_servers,
            tasks=TASKS,
            has_stores=has_stores,
            rebalance_protocol=protocol,
        )

        def strategy() -> OffloadedPlans:
            return OffloadedPlans(store, group=GROUP, tasks_at_least=1)

        try:
            group.join("one", strategy=strategy())
            group.start("two", strategy=strategy())
            group.until(lambda: _has_snapshot_of(store, group))
            _wait_until_settled(broker, group)
            planned = _write_plan(store)
            return Adoption(
                client=client,
                protocol=protocol,
                has_stores=has_stores,
                planned=planned,
                rebalances=_rebalances(broker, group, planned),
            )
        finally:
            group.close()


def _write_plan(store: PlanStore) -> int:
    """Write a plan for the snapshot, as the Spark job does; return how many tasks it moves."""
    snapshot = store.read_snapshot(GROUP)
    if snapshot is None:
        raise FileNotFoundError(store.snapshot_path(GROUP))
    assignment = high_availability(snapshot.state)
    store.write_plan(GROUP, plan_for(snapshot, assignment))
    return int((assignment.active != snapshot.state.owner).sum())


def _rebalances(broker: RunningBroker, group: MemberGroup, planned: int) -> int | None:
    """Ask for rebalances until the second member runs what the plan gives it; return how many."""
    first = _generation(broker)
    for _ in range(MOST_REBALANCES):
        group.members["one"].rejoin()
        _wait_until_settled(broker, group, after=_generation(broker))
        if len(group.members["two"].active) == planned and group.is_even():
            return _generation(broker) - first
    return None


def _has_snapshot_of(store: PlanStore, group: MemberGroup) -> bool:
    snapshot = store.read_snapshot(GROUP)
    return snapshot is not None and len(snapshot.state.clients) == len(group.members)


def _generation(broker: RunningBroker) -> int:
    return broker.groups()[GROUP].generation


def _wait_until_settled(broker: RunningBroker, group: MemberGroup, *, after: int = 0) -> None:
    """Wait until every member has its answer of a generation after a given one."""

    def is_settled() -> bool:
        now = broker.groups()[GROUP]
        is_stable = now.state is GroupState.STABLE and now.generation > after
        taken = [member.generation for member in group.members.values()]
        return is_stable and all(generation == now.generation for generation in taken)

    group.until(is_settled)


def main() -> None:
    """Print the table."""
    write = sys.stdout.write
    write(f"{HEADER}\n")
    for has_stores in (False, True):
        for client, protocol in GROUPS:
            with TemporaryDirectory() as directory:
                found = adopt_plan(
                    client, protocol, has_stores=has_stores, directory=Path(directory)
                )
            write(f"{found}\n")
            sys.stdout.flush()
    try:
        StreamsAssignor(TOPOLOGY, rebalance_protocol="cooperative")
    except ConfigError as refusal:
        write(f"{'aiokafka':13} {'cooperative':12} refused: {refusal}\n")


if __name__ == "__main__":
    main()
