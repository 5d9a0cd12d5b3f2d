"""When two states are the same: everything that can still matter, and nothing else.

Left out: the clock (it stands still), member ids (only whose, and present or former), numbers of
generations (only present or past), nonces and unique fields (only their being there matters, and
that follows from the release), how long a member waits before it asks again, the order in which
members joined (leaders are tried one by one, assignors sort), counters of timers.

States that differ by nothing but the letters of their processes are one as well, and so are states
that differ by the numbers of their partitions: a state is the facts of each process, in an order of
their own, and for each partition in which of their sets it is. A tie that an assignor breaks by
process id or by number of partition is so broken in one way only.
"""

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import groupby, permutations, product
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
from probing import MemberState
from system_tests.coordinator import Group, JoinGroup, LeaveGroup, Member, SyncGroup
from system_tests.explore.moves import Progress
from system_tests.explore.routing_key import routing_facts
from system_tests.explore.world import StillWorld
from system_tests.sim import Evidence
from system_tests.sim.world import StreamThread, read_assignment, read_subscription

Numbers = frozenset[int]
_PARTITION = itemgetter(1)  # of a task or a topic partition alike
_SHORT: dict[Hashable, int] = {}
"""Facts that were met, each with a number to stand for it: hashing them again would be slow."""
Key = tuple[Hashable, ...]


class Part(NamedTuple):
    """What is known of something: facts, and sets of partition numbers in a fixed order."""

    facts: Hashable
    sets: tuple[Numbers, ...]


class Keys:
    """Makes the keys of one search; equal parts are kept once, so that keys are short."""

    def __init__(self, *, symmetric: bool = True) -> None:
        """Begin.

        Args:
            symmetric: take states for the same that differ by letters and numbers only.
        """
        self._symmetric = symmetric
        self._ids: dict[Hashable, int] = {}

    def key_of(self, world: StillWorld, evidence: Evidence, progress: Progress) -> Key:
        """Return a value that is equal for equal states."""
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
        parts: list[tuple[int, tuple[Numbers, ...]]] = []
        for process in range(world.setup.processes):
            part = _process(world, evidence, progress, process)
            shape = (part.facts, *map(len, part.sets))
            parts.append((self._ids.setdefault(shape, len(self._ids)), part.sets))
        whole = self._ids.setdefault(state, len(self._ids))
        if not self._symmetric:
            return (whole, *parts)
        parts.sort(key=lambda part: part[0])
        ids = tuple(part[0] for part in parts)
        return (whole, ids, min(map(_profiles, _orders(parts))))


def _orders(parts: list[tuple[int, tuple[Numbers, ...]]]) -> Iterable[list[tuple[Numbers, ...]]]:
    """Every order of the parts' sets that keeps the order of their ids."""
    groups = [[sets for _, sets in same] for _, same in groupby(parts, key=lambda part: part[0])]
    for chosen in product(*map(permutations, groups)):
        yield [sets for same in chosen for sets in same]


def _profiles(parts: list[tuple[Numbers, ...]]) -> tuple[int, ...]:
    """For each partition a number whose bits say in which sets it is; the numbers ascend."""
    bits: dict[int, int] = {}
    bit = 1
    for sets in parts:
        for numbers in sets:
            for number in numbers:
                bits[number] = bits.get(number, 0) | bit
            bit <<= 1
    return tuple(sorted(bits.values()))


@lru_cache(maxsize=65_536)
def said(metadata: bytes) -> Part:
    """What a subscription says, without what changes from one to the next."""
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
def answered(data: bytes) -> Part:
    """What an answer says, without its routing view."""
    if not data:
        return Part(-1, ())
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


def _process(world: StillWorld, evidence: Evidence, progress: Progress, process: int) -> Part:
    disk = world.disks[process]
    facts: list[Hashable] = [
        (progress.stages[process], process in progress.stopped, process in progress.crashed)
    ]
    sets = [_tasks(disk.at_rest), _tasks(disk.open_copies)]
    for thread in world.threads:
        if thread.process == process:
            for part in (
                _thread(world, evidence, thread),
                _on_the_way(world, thread),
                *_members(world, thread),
            ):
                facts.append(part.facts)
                sets += part.sets
    return Part(tuple(facts), tuple(sets))


def _thread(world: StillWorld, evidence: Evidence, thread: StreamThread) -> Part:
    behaviour = thread.behaviour
    program = (behaviour.release.name, behaviour.upgrade_from)
    if not thread.is_up:
        return Part(program, ())
    held = thread.streams.held
    facts = (
        program,
        _version_state(thread.streams.state),
        (thread.phase.value, thread.leads, thread.generation == world.group.generation),
        (thread.rejoin_needed, thread.rejoin_after, thread.followup_remembered),
        thread.led_supported,
        (bool(thread.member_id), evidence.processes_in_group(thread.name)),
        thread.member_id in evidence.cached,
    )
    return Part(facts, (_partitions(thread.owned), _tasks(held.active), _tasks(held.standby)))


def _version_state(state: MemberState) -> Hashable:
    """What the program does not say already."""
    return (
        (state.used_version, state.pinned, state.next_rebalance_ms),
        (state.rebalancing, state.refusal is None),
    )


def _members(world: StillWorld, thread: StreamThread) -> Iterable[Part]:
    """The present member of a thread and its former ones, as the coordinator has them."""
    group, names = world.group, world.names
    for member in group.members.values():
        if names[member.member_id] == thread.name:
            yield _member(group, member, thread)
            yield said(member.protocols[0].metadata)
            yield answered(member.assignment)
    handed_out = [i for i in group.pending_deadline_by_id if names[i] == thread.name]
    yield Part(("handed out", *(i == thread.member_id for i in handed_out)), ())
    for pending in world.scheduler.unordered():
        if pending.kind == "request" and isinstance(pending.data[0], SyncGroup):
            for member_id, data in pending.data[0].assignments.items():
                if names[member_id] == thread.name:
                    yield answered(data)


def _member(group: Group, member: Member, thread: StreamThread) -> Part:
    token: Any = member.join_token or member.sync_token
    facts = (
        member.member_id == thread.member_id,
        member.member_id == group.leader_id,
        (member.is_new, member.member_id in group.unsynced),
        (member.join_token is not None, member.sync_token is not None),
        token is not None and token[1:3] == (thread.life, thread.request),
    )
    return Part(facts, ())


def _on_the_way(world: StillWorld, thread: StreamThread) -> Part:
    facts: list[Hashable] = []
    sets: list[Numbers] = []
    group = world.group
    for pending in world.scheduler.pending():
        if pending.target != thread.index:
            continue
        if pending.kind != "request":
            is_due = pending.due_ms <= world.now_ms
            facts.append((pending.kind, is_due, pending.data[2:3]))
            continue
        request = pending.data[0]
        match request:
            case JoinGroup():
                part = said(request.protocols[0].metadata)
                facts.append(("join", request.member_id in group.members, part.facts))
                sets += part.sets
            case SyncGroup():
                is_current = request.generation == group.generation
                facts.append(("sync", is_current, bool(request.assignments)))
            case LeaveGroup():
                known = (member.member_id in group.members for member in request.members)
                facts.append(("leave", *known))
    return Part(tuple(facts), tuple(sets))


def _short(facts: Hashable) -> int:
    return _SHORT.setdefault(facts, len(_SHORT))


def _tasks(tasks: Mapping[TaskId, object]) -> Numbers:
    return frozenset(map(_PARTITION, tasks))


def _partitions(partitions: Iterable[TopicPartition]) -> Numbers:
    return frozenset(map(_PARTITION, partitions))
