"""Promises for a native leader whose group has one hostile member.

The first bytes of an input choose the group: number and kinds of the honest members, and which
partitions the hostile member claims; the rest is the hostile member's subscription. The leader
answers three successive generations with what it remembers, and one more without the hostile
member. Every honest member can follow its answer, and all tasks have owners; if the hostile
member's topology is refused, the honest members have all of them, then and later.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID

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
from assignor.placement import find_strategy
from assignor.rebalance import GroupAnswer
from assignor.topology import content_fingerprint
from encoding import (
    Subscription,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_subscription,
)
from encoding.native import ReachedRow, SubtopologyRow
from fuzz.corpus import Seed
from fuzz.promises import expect
from probing import find_release

HOSTILE = "x"
GENERATIONS = 3
PARTITIONS = 4
_HEAD = 4
_KINDS = ("native", "3.9", "2.4")
_STRATEGIES = (
    "sticky",
    "high_availability",
    "kafka_high_availability",
    "kafka_streams_group",
    "fallback_prior",
)
_TOPOLOGY = (
    Topology()
    .add_source("left", topics=["left"])
    .add_source("right", topics=["right"])
    .add_processor("join", parents=["left", "right"])
    .add_state_store("store", processors=["join"])
)
_SUBTOPOLOGIES = _TOPOLOGY.subtopologies("app")
TASKS = frozenset(TaskId(0, partition) for partition in range(PARTITIONS))
_TOPICS = ("left", "right")
_COUNTS = dict.fromkeys(_TOPICS, PARTITIONS)
_ENDS = dict.fromkeys(TASKS, 1_000)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The group of an input."""

    honest: int
    kinds: tuple[str, ...]
    strategy: str
    cooperative: bool
    claims: str  # partitions that the hostile member claims to own: all, some, none, hidden
    blob: bytes


def chosen(data: bytes) -> Chosen:
    """The group of an input; missing bytes are zeros."""
    head = data[:_HEAD].ljust(_HEAD, b"\0")
    honest = 1 + head[0] % 4
    kinds = tuple(_KINDS[(head[1] >> (2 * n)) % len(_KINDS)] for n in range(honest))
    return Chosen(
        honest=honest,
        kinds=("native", *kinds[1:]),
        strategy=_STRATEGIES[head[2] % len(_STRATEGIES)],
        cooperative=bool(head[3] & 1),
        claims=("none", "all", "some", "hidden")[head[3] >> 1 & 3],
        blob=data[_HEAD:],
    )


def lead_any_group(data: bytes) -> None:
    """Lead a group with a hostile member.

    Raises:
        Finding: a promise does not hold; any other exception is a finding as well.
    """
    group = chosen(data)
    honest = {f"m{n}": _member(kind, n) for n, kind in enumerate(group.kinds)}
    settings = _settings(group.strategy)
    memory = LeaderKnowledge()
    refusals = 0
    for generation in range(1, GENERATIONS + 2):
        blobs = [_written(name, m, group, generation) for name, m in honest.items()]
        if generation <= GENERATIONS:
            blobs.append(_hostile(group))
        answer = assign_group(
            settings,
            blobs,
            _COUNTS,
            knowledge=LeaderKnowledge(
                end_offset_sums=_ENDS,
                leader_id="m0",
                now_ms=1_000,
                claims=memory.claims,
                topologies=memory.topologies,
                generation=generation,
            ),
            held_view=honest["m0"].view,
        )
        _check(answer, group, generation)
        if answer.decision.error_code:  # any member may ask the application to stop (KIP-671)
            return
        for name, member in honest.items():
            given = answer.answers[name]
            received = member.receive(given.partitions, given.user_data, now_ms=1_000)
            expect(not received.failure, f"{name} cannot follow its answer: {received.failure}")
        memory = answer.remembered()
        refusals += is_refused(answer)
        if refusals == generation or (refusals == GENERATIONS < generation):
            _check_honest(answer, honest, group)


def is_refused(answer: GroupAnswer) -> bool:
    """Whether the hostile member gets no tasks because of its topology."""
    return any(why.startswith(f"{HOSTILE} gets no tasks: topology") for why in answer.warnings)


def _check_honest(answer: GroupAnswer, honest: Iterable[str], group: Chosen) -> None:
    """Honest members have all tasks: the hostile member's topology is refused, or it is gone."""
    if group.cooperative or group.claims not in {"none", "hidden"}:
        return
    given = [p for name in honest for p in answer.answers[name].partitions]
    expect(len(given) == 2 * PARTITIONS, f"honest members have all tasks, not {len(given)}")
    expect(answer.waiting == (), f"no partition waits: {answer.waiting}")


def _check(answer: GroupAnswer, group: Chosen, generation: int) -> None:
    expect(answer.faults == (), f"the leader does not fail: {answer.faults}")
    owners: dict[TopicPartition, str] = {}
    for name, given in answer.answers.items():
        for partition in given.partitions:
            expect(partition not in owners, f"{partition} goes to one member")
            owners[partition] = name
    reads = {p for p in owners if p.topic in _TOPICS and 0 <= p.partition < PARTITIONS}
    others = {owners[p] for p in owners.keys() - reads}
    expect(others <= {HOSTILE}, f"{others} get partitions of another topology")
    size = sum(len(given.user_data) for given in answer.answers.values())
    expect(size < 6_000 * len(answer.answers), f"answers stay small: {size} bytes")
    expect(all(w.isprintable() for w in answer.warnings), "warnings are printable lines")
    # A newer form that the hostile member brought is wanted after it is gone, too.
    waits = answer.withheld or any(HOSTILE in why for why in answer.warnings)
    waits = waits or (generation > GENERATIONS and bool(answer.waiting))
    stops = answer.decision.error_code  # any member may ask the whole application to stop
    if not waits and not stops and group.claims in {"none", "hidden"} and not group.cooperative:
        expect(len(reads) == 2 * PARTITIONS, f"every task has an owner in {generation}")


def _written(name: str, member: StreamsMember, group: Chosen, generation: int) -> GroupMember:
    owned: tuple[TopicPartition, ...] = ()
    if group.cooperative:
        owned = tuple(sorted(p for inputs in member.held.active.values() for p in inputs))
    data = member.subscription(owned_partitions=owned, owned_generation=generation - 1)[1]
    return GroupMember(member_id=name, user_data=data, owned_partitions=owned)


def _hostile(group: Chosen) -> GroupMember:
    everything = tuple(TopicPartition(t, p) for t in _TOPICS for p in range(PARTITIONS))
    owned = {"none": (), "all": everything, "some": everything[1:6:2], "hidden": None}
    return GroupMember(
        member_id=HOSTILE, user_data=group.blob, owned_partitions=owned[group.claims]
    )


def _member(kind: str, number: int) -> StreamsMember:
    identity = MemberIdentity(process_id=UUID(int=number + 1), user_endpoint=f"host-{number}:80")
    return StreamsMember(find_release(kind), identity, subtopologies=_SUBTOPOLOGIES)


@lru_cache
def _settings(strategy: str) -> LeaderSettings:
    return LeaderSettings(
        release=find_release("native"),
        subtopologies=_SUBTOPOLOGIES,
        config=AssignmentConfig(num_standby_replicas=1),
        strategy=find_strategy(strategy),
    )


def led_seeds() -> Iterator[Seed]:
    """Groups of every kind, with an honest member's subscription for the hostile member."""
    for number, kind in enumerate((*_KINDS, "1.1", "4.0")):
        member = _member(kind, 9)
        for round_ in range(2):
            data = member.subscription({TaskId(0, 1): 900})[1]
            decode_subscription(data)
            head = bytes((number, 0b100100 + number, number, number * 2 + round_))
            yield Seed("led_group", f"{kind} {round_}", head + data)
    for name, value in _topology_subscriptions():
        yield Seed("led_group", name, bytes((2, 0, 0, 0)) + encode_subscription(value))


def _topology_subscriptions() -> Iterator[tuple[str, Subscription]]:
    """Subscriptions whose rows name topics, fingerprints and forms of the honest members."""
    value = decode_subscription(_member("native", 9).subscription()[1])
    native = value.native
    if native is None:
        raise TypeError("a native member writes native fields")
    form = content_fingerprint(_SUBTOPOLOGIES[0])
    rows = {
        "no topics of others": _row(("other",)),
        "a source as repartition topic": _row(("left",), repartition=(("left", 1),)),
        "copartitioned": _row(("left", "other", "right"), groups=(("left", "right"),)),
        "many partitions": _row(("app-z",), repartition=(("app-z", 2**20),)),
        "a newer form": _row(("left", "right")),
    }
    for name, row in rows.items():
        for number, fingerprint in enumerate((b"hostile!", native.fingerprint)):
            changed = replace(
                native,
                fingerprint=fingerprint,
                topology_version=2,
                carried=(row,),
                reached_versions=(ReachedRow(form, 2**62 - 1, 2**31 - 1),),
            )
            yield f"{name} {number}", replace(value, native=changed)


def _row(
    sources: tuple[str, ...],
    *,
    repartition: tuple[tuple[str, int], ...] = (),
    groups: tuple[tuple[str, ...], ...] = (),
) -> SubtopologyRow:
    return SubtopologyRow(
        versions=(2,),
        source_topics=sources,
        sink_topics=(),
        repartition_topics=repartition,
        changelog_topics=(),
        copartition_groups=groups,
        changelog_retention_ms=(),
    )
