"""Whether a member does its work, for probes, alarms and people."""

import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from assignor.embedding.state_stores import Phase, TaskStores
from encoding import TaskId, task_order


class ObservedMember(Protocol):
    """A `StreamsAssignor`, as far as health needs it."""

    @property
    def failed(self) -> str | None:
        """Why the member ended."""
        ...

    @property
    def stopped(self) -> tuple[str, ...]:
        """Why some tasks run on no member until something is corrected."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether it has the tasks that the group gives it, after its first answers."""
        ...

    @property
    def poll_limit_s(self) -> float:
        """How long the function that processes records may take for one of them."""
        ...

    @property
    def unheard_s(self) -> float:
        """How long no coordinator has answered; 0.0: it has within the session timeout."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a member does.

    Attributes:
        ended: why it processes nothing any more until it is started again; "": it does.
        problems: what has to be corrected; `ended` is the first, if it is set.
        has_joined: the group has given it its tasks, which may be none; not only a first, empty
            answer, after which another one follows.
        active: tasks that it is to process, also those that wait for the answer of a rebalance.
        running: those that it processes.
        left: task -> changelog records that its copy lacks; None: not known. Of `active` tasks that
            do not run yet, and of standbys.
    """

    ended: str = ""
    problems: tuple[str, ...] = ()
    has_joined: bool = False
    active: AbstractSet[TaskId] = frozenset()
    running: AbstractSet[TaskId] = frozenset()
    left: Mapping[TaskId, int | None] = field(default_factory=dict)

    @property
    def is_alive(self) -> bool:
        """Whether a restart would change nothing."""
        return not self.ended

    @property
    def is_ready(self) -> bool:
        """Whether it processes all of its tasks, and nothing has to be corrected."""
        return self.has_joined and not self.problems and self.active <= self.running

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object, with tasks as Kafka writes them."""
        names = {
            name: [str(task) for task in sorted(getattr(self, name), key=task_order)]
            for name in ("active", "running")
        }
        left = {str(task): self.left[task] for task in sorted(self.left, key=task_order)}
        return {
            "alive": self.is_alive,
            "ready": self.is_ready,
            "joined": self.has_joined,
            "problems": list(self.problems),
            **names,
            "left": left,
        }


def health_of(member: ObservedMember, stores: TaskStores) -> Health:
    """Return the health of a member; on any thread.

    Args:
        member: its assignor.
        stores: its state.
    """
    has_joined = member.is_settled  # before the tasks that it has then
    ended, unheard_s = member.failed or stores.work.ended, member.unheard_s
    problems = [ended] if ended else []
    current = stores.work.current
    if current is not None and (took_s := time.monotonic() - current[2]) > member.poll_limit_s:
        (topic, partition), offset, _ = current
        problems.append(
            f"the function that processes records has been at {topic} [{partition}], offset "
            f"{offset} for {took_s:.0f} s"
        )
    if unheard_s and not ended:
        problems.append(
            f"no broker has answered the heartbeats of this member for {unheard_s:.0f} s, longer "
            "than its session timeout: other members may have its tasks"
        )
    if stores.work.waits:
        problems.append(stores.work.waits)
    problems += member.stopped
    progress = stores.progress()
    return Health(
        ended=ended,
        problems=tuple(problems),
        has_joined=has_joined,
        active=frozenset(stores.active | stores.suspended),
        running=frozenset(each.task for each in progress if each.phase is Phase.RUNNING),
        left={each.task: each.left for each in progress if each.phase is not Phase.RUNNING},
    )
