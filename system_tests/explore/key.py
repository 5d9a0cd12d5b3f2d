"""Keys of states: equal for states whose possible futures are equal.

A key leaves out:

- the clock, which does not run;
- member ids; only the owner counts, and whether the id is the current one;
- generation numbers; only whether a generation is the current one counts;
- nonces and unique fields; only their presence counts, which follows from the release;
- how long a member waits before it retries, and counters of timers;
- the order in which members joined: every leader is tried, and assignors sort.

States that differ only by process letters have the same key, and so have states that differ only
by partition numbers: a key holds the sorted facts of the processes and, for each partition, the
sets that contain it. Where an assignor breaks a tie by process id or partition number, only one of
the outcomes is explored.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby, permutations, product
from marshal import dumps
from numbers import Integral
from operator import itemgetter
from typing import Any, NamedTuple

from encoding import (
    DecodeError,
    FutureSubscription,
    TaskId,
    TopicPartition,
    decode_assignment,
    decode_subscription,
)
from system_tests.coordinator import Group, JoinGroup, LeaveGroup, Member, SyncGroup
from system_tests.engine import Pending
from system_tests.explore.moves import Progress
from system_tests.explore.routing_key import routing_facts
from system_tests.explore.world import SearchWorld
from system_tests.sim import Evidence
from system_tests.sim.world import Phase, StreamThread, read_assignment, read_subscription

Numbers = frozenset[int]
_PARTITION = itemgetter(1)  # of a task or a topic partition alike
_FIRST = itemgetter(0)
_PHASES = {phase: phase.value for phase in Phase}
_NO_PENDING_ID = ("pending id",)
_DIGEST_BYTES = 16
_MARSHAL_VERSION = 2  # later versions write the same value in more than one way
Key = bytes
"""A digest of a state, 16 bytes; the same in every process and in every run."""


class Part(NamedTuple):
    """Part of a state: facts, and sets of partition numbers in a fixed order."""

    facts: Hashable
    sets: tuple[Numbers, ...]


class Keys:
    """Computes the keys of one search; caches the digests of parts, since most parts repeat."""

    def __init__(self, *, symmetric: bool = True) -> None:
        """Start with an empty cache.

        Args:
            symmetric: give states that differ by process letters and partition numbers only the
                same key.
        """
        self._symmetric = symmetric
        self._digests: dict[Hashable, bytes] = {}

    def key_of(self, world: SearchWorld, evidence: Evidence, progress: Progress) -> Key:
        """Return the key of a state."""
        group = world.group
        state = (
            group.state.value,
            group.join_is_delayed,
            group.new_member_added,
            world.is_stable,
            evidence.led_by_native,
            progress.crashes,
            progress.is_forced,
            routing_facts(world),
        )
        found = _ByLane(world, group)
        parts: list[tuple[bytes, list[Numbers]]] = []
        for process in range(world.setup.processes):
            facts, sets = _process(world, evidence, progress, process, found)
            parts.append((self._digest((facts, *map(len, sets))), sets))
        whole = self._digest(state)
        if not self._symmetric:
            numbers = tuple(tuple(tuple(sorted(group)) for group in sets) for _, sets in parts)
            return _key(whole, parts, numbers)
        parts.sort(key=_FIRST)
        if len({digest for digest, _ in parts}) == len(parts):
            return _key(whole, parts, _profiles([sets for _, sets in parts]))
        return _key(whole, parts, min(map(_profiles, _orders(parts))))

    def _digest(self, value: Hashable) -> bytes:
        digest = self._digests.get(value)
        if digest is None:
            digest = self._digests[value] = _digest_of(value)
        return digest


def _key(
    whole: bytes, parts: Iterable[tuple[bytes, list[Numbers]]], numbers: tuple[Any, ...]
) -> Key:
    content = b"".join((whole, *map(_FIRST, parts), dumps(numbers, _MARSHAL_VERSION)))
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _digest_of(value: Hashable) -> bytes:
    return blake2b(_plain(value).encode(), digest_size=_DIGEST_BYTES).digest()


def _plain(value: object) -> str:
    """Return a text that is equal for equal values, whatever the names of their types."""
    if isinstance(value, tuple):
        return f"({','.join(map(_plain, value))})"
    if isinstance(value, Integral):
        return str(int(value))
    return repr(str(value)) if isinstance(value, str) else repr(value)


def _orders(parts: list[tuple[bytes, list[Numbers]]]) -> Iterator[list[list[Numbers]]]:
    """Yield every order of the parts' sets that keeps the order of their digests."""
    groups = [[sets for _, sets in same] for _, same in groupby(parts, key=_FIRST)]
    for chosen in product(*map(permutations, groups)):
        yield [sets for same in chosen for sets in same]


def _profiles(parts: Iterable[list[Numbers]]) -> tuple[int, ...]:
    """Return, for each partition, a number whose bits are the sets it is in; sorted."""
    bits: defaultdict[int, int] = defaultdict(int)
    bit = 1
    for sets in parts:
        for numbers in sets:
            for number in numbers:
                bits[number] += bit
            bit <<= 1
    return tuple(sorted(bits.values()))


@lru_cache(maxsize=65_536)
def subscription_part(metadata: bytes) -> Part:
    """Return the content of a subscription, without what changes from one to the next."""
    outer = read_subscription(metadata)
    owned = _partitions(outer.owned_partitions)
    try:
        value = decode_subscription(outer.user_data)
    except DecodeError:
        return Part(_short(outer.user_data), (owned,))
    if isinstance(value, FutureSubscription):
        return Part(_short(value), (owned,))
    native = value.native
    trailer = native and (native.version, native.latest_supported_version, native.pinned_version)
    by_sum: dict[int, set[int]] = {}
    for task, total in value.task_offset_sums:
        by_sum.setdefault(total, set()).add(task.partition)
    sums = sorted(by_sum)
    facts = (value.version, value.latest_supported_version, value.error_code)
    return Part(
        _short((facts, trailer, tuple(sums))),
        (owned, *(frozenset(by_sum[total]) for total in sums)),
    )


@lru_cache(maxsize=65_536)
def assignment_part(data: bytes) -> Part:
    """Return the content of an assignment, without its routing view."""
    if not data:
        return Part(b"", ())
    partitions, user_data = read_assignment(data)
    numbers = _partitions(partitions)
    try:
        value = decode_assignment(user_data)
    except DecodeError:
        return Part(_short(user_data), (numbers,))
    native = value.native
    trailer = native and (native.version, native.next_version, native.subscription_read)
    warmup = frozenset(task.partition for task in native.warmup_tasks) if native else frozenset()
    active = frozenset(task.partition for task in value.active_tasks)
    facts = (value.version, value.commonly_supported_version, value.error_code)
    return Part(
        _short((facts, value.next_rebalance_ms, trailer)),
        (numbers, active, warmup, _tasks(value.standby_tasks)),
    )


class _ByLane:
    """Members, pending ids, pending events and assignments of each lane, collected in one pass."""

    def __init__(self, world: SearchWorld, group: Group) -> None:
        self.group, names = group, world.member_ids.names
        self.members: dict[str, list[Member]] = {}
        for member in group.members.values():
            self.members.setdefault(names[member.member_id], []).append(member)
        self.pending_ids: dict[str, list[str]] = {}
        for member_id in group.pending_deadline_by_id:
            self.pending_ids.setdefault(names[member_id], []).append(member_id)
        self.pending: dict[int, list[Pending]] = {}
        for pending in world.scheduler.pending():
            self.pending.setdefault(pending.target, []).append(pending)
        self.answers: dict[str, list[Part]] = {}
        for pending in world.scheduler.unordered():
            if pending.kind == "request" and isinstance(pending.data[0], SyncGroup):
                for member_id, data in pending.data[0].assignments.items():
                    self.answers.setdefault(names[member_id], []).append(assignment_part(data))


def _process(
    world: SearchWorld, evidence: Evidence, progress: Progress, process: int, found: _ByLane
) -> tuple[tuple[Hashable, ...], list[Numbers]]:
    """Return the facts of a process and its sets of partitions; both in a fixed order."""
    disk = world.disks[process]
    facts: list[Hashable] = [
        (progress.stages[process], process in progress.stopped, process in progress.crashed)
    ]
    sets = [_tasks(disk.at_rest), _tasks(disk.open_copies)]
    group, threads = found.group, world.setup.threads
    for thread in world.threads[process * threads : (process + 1) * threads]:
        name = thread.name
        facts.append(_thread(group, evidence, thread))
        if thread.phase is not Phase.DOWN:
            held = thread.streams.held
            sets += (_partitions(thread.owned), _tasks(held.active), _tasks(held.standby))
        pending = found.pending.get(thread.index)
        if pending is None:
            facts.append(())
        else:
            part = _pending_part(world, group, pending)
            facts.append(part.facts)
            sets += part.sets
        for member in found.members.get(name, ()):
            offered, given = (
                subscription_part(member.protocols[0].metadata),
                assignment_part(member.assignment),
            )
            facts += (_member(group, member, thread), offered.facts, given.facts)
            sets += offered.sets
            sets += given.sets
        pending_ids = found.pending_ids.get(name)
        if pending_ids is None:
            facts.append(_NO_PENDING_ID)
        else:
            facts.append(("pending id", *(i == thread.member_id for i in pending_ids)))
        for given in found.answers.get(name, ()):
            facts.append(given.facts)
            sets += given.sets
    return tuple(facts), sets


def _thread(group: Group, evidence: Evidence, thread: StreamThread) -> tuple[Hashable, ...]:
    behaviour = thread.behaviour
    if thread.phase is Phase.DOWN:
        return (behaviour.release.name, behaviour.upgrade_from)
    state = thread.streams.state  # only what does not follow from release and upgrade.from
    return (
        behaviour.release.name,
        behaviour.upgrade_from,
        (state.used_version, state.pinned, state.next_rebalance_ms),
        (state.rebalancing, state.refusal is None),
        (_PHASES[thread.phase], thread.leads, thread.generation == group.generation),
        (thread.rejoin_needed, thread.rejoin_after),
        thread.led_supported,
        (bool(thread.member_id), evidence.in_group(thread.name)),
        thread.member_id in evidence.cached,
    )


def _member(group: Group, member: Member, thread: StreamThread) -> Hashable:
    """Return the facts of a current or former member of a thread, as the coordinator has it."""
    token: Any = member.join_token or member.sync_token
    return (
        member.member_id == thread.member_id,
        member.member_id == group.leader_id,
        (member.is_new, member.member_id in group.unsynced),
        (member.join_token is not None, member.sync_token is not None),
        token is not None and token[1:3] == (thread.incarnation, thread.request),
    )


def _pending_part(world: SearchWorld, group: Group, found: Iterable[Pending]) -> Part:
    facts: list[Hashable] = []
    sets: list[Numbers] = []
    for pending in found:
        if pending.kind != "request":
            is_due = pending.due_ms <= world.now_ms
            facts.append((pending.kind, is_due, pending.data[2:3]))
            continue
        request = pending.data[0]
        match request:
            case JoinGroup():
                part = subscription_part(request.protocols[0].metadata)
                facts.append(("join", request.member_id in group.members, part.facts))
                sets += part.sets
            case SyncGroup():
                is_current = request.generation == group.generation
                facts.append(("sync", is_current, bool(request.assignments)))
            case LeaveGroup():
                known = (member.member_id in group.members for member in request.members)
                facts.append(("leave", *known))
    return Part(tuple(facts), tuple(sets))


@lru_cache(maxsize=65_536)
def _short(facts: Hashable) -> bytes:
    """Return a digest of facts; hashing the facts again and again would be slow."""
    return _digest_of(facts)


def _tasks(tasks: Mapping[TaskId, object]) -> Numbers:
    return frozenset(map(_PARTITION, tasks))


def _partitions(partitions: Iterable[TopicPartition]) -> Numbers:
    return frozenset(map(_PARTITION, partitions))
