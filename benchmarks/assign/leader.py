"""CPU seconds of `assign_group`, the whole way of a rebalance at the leader, on one large group.

`python -m benchmarks.assign.leader [--members 1000] [--tasks 10000] [--repeats 5]`: native members
with endpoints, without and with a standby. Every row is the least of the repeats.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import click

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    MemberIdentity,
    StreamsMember,
    Topology,
    assign_group,
)
from probing import find_release

_EVENTS = ("first assignment", "nothing changes", "one member leaves", "the rebalance after that")
_LEAVES = 2
_RELEASE = find_release("native")
_SUBTOPOLOGIES = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
    .subtopologies("app")
)


def _member(number: int) -> StreamsMember:
    identity = MemberIdentity(process_id=UUID(int=number + 1), user_endpoint=f"host-{number}:80")
    return StreamsMember(_RELEASE, identity, subtopologies=_SUBTOPOLOGIES)


def measure(members: int, tasks: int, standbys: int, repeats: int) -> Iterator[tuple[str, float]]:
    """(event, CPU seconds) of rebalances in a row, led by the first member."""
    group = {f"client-{n:05}-{UUID(int=n + 1)}": _member(n) for n in range(members)}
    leader = next(iter(group))
    settings = LeaderSettings(
        release=_RELEASE,
        subtopologies=_SUBTOPOLOGIES,
        config=AssignmentConfig(num_standby_replicas=standbys),
    )
    knowledge = LeaderKnowledge(leader_id=leader, generation=1)
    for number, event in enumerate(_EVENTS):
        if number == _LEAVES:
            del group[list(group)[-1]]
        blobs = [
            GroupMember(member_id=name, user_data=member.subscription()[1])
            for name, member in group.items()
        ]
        least_s = float("inf")
        for _ in range(repeats):
            began_s = time.process_time()
            answer = assign_group(
                settings,
                blobs,
                {"lines": tasks},
                knowledge=knowledge,
                held_view=group[leader].view,
            )
            least_s = min(least_s, time.process_time() - began_s)
        yield event, least_s
        for name, member in group.items():
            sent = answer.answers[name]
            member.receive(sent.partitions, sent.user_data, now_ms=0)
        knowledge = replace(answer.remembered(), leader_id=leader, generation=number + 2)


@click.command()
@click.option("--members", default=1_000, show_default=True, help="Members of the group.")
@click.option("--tasks", default=10_000, show_default=True, help="Tasks of the group.")
@click.option("--repeats", default=5, show_default=True, help="Runs of which the least counts.")
def main(members: int, tasks: int, repeats: int) -> None:
    """Measure `assign_group` on one large group."""
    for standbys in (0, 1):
        for event, seconds in measure(members, tasks, standbys, repeats):
            click.echo(f"{standbys} standbys, {event:<26} {seconds:6.3f} s")


if __name__ == "__main__":
    main()
