"""What is wrong or dangerous in a group, as sentences for an operator, worst first.

Each row of `RULES` looks at the whole and yields a sentence a case. The word in front of a row is
for programs and never changes its meaning.
"""

import ipaddress
from collections.abc import Callable, Iterator
from typing import Final

from assignor.inspection.routing import few
from assignor.inspection.tasks import stateful_subtopologies
from assignor.inspection.values import NO_OFFSET, ClientLook, Finding, GroupInspection
from encoding import NO_REBALANCE, AssignorError, shown
from probing import EARLIEST_PROBEABLE_VERSION

NEARLY_FULL: Final = 0.8
"""Share of the broker's limit from which on the size of the group's record is a finding."""

Rule = Callable[[GroupInspection], Iterator[str]]


def findings_of(look: GroupInspection) -> tuple[Finding, ...]:
    """Every finding, in the order of the rules."""
    return tuple(
        Finding(kind=kind, sentence=sentence) for kind, rule in RULES for sentence in rule(look)
    )


def _unreadable(look: GroupInspection) -> Iterator[str]:
    for member in look.members:
        if member.unreadable:
            yield f"{shown(member.client)}: {member.unreadable}"


def _errors(look: GroupInspection) -> Iterator[str]:
    for code in sorted({one.answer.error_code for one in look.members} - {0}):
        names = sorted({one.client for one in look.members if one.answer.error_code == code})
        known = {error.value: error.name for error in AssignorError}
        yield f"the leader answered error {code} ({known.get(code, 'unknown')}) to {few(names)}"


def _shutdown(look: GroupInspection) -> Iterator[str]:
    names = sorted({one.client for one in look.members if one.wants_shutdown})
    if names:
        yield f"{few(names)} asks the whole application to stop (KIP-671)"


def _owned_twice(look: GroupInspection) -> Iterator[str]:
    found = [str(one.task) for one in look.tasks if len(one.owners) > 1]
    if found:
        yield f"task {few(found)} runs on more than one process"


def _not_owned(look: GroupInspection) -> Iterator[str]:
    found = [str(one.task) for one in look.tasks if not one.owners]
    if found:
        yield (
            f"task {few(found)} runs nowhere: it waits for its old owner, or the leader has not "
            "given it to anybody"
        )


def _beside_its_active(look: GroupInspection) -> Iterator[str]:
    found = [str(one.task) for one in look.tasks if set(one.owners) & set(one.standbys)]
    if found:
        yield f"task {few(found)} has its standby on the process that runs it"


def _below_share(look: GroupInspection) -> Iterator[str]:
    """Clients with fewer stateful tasks than tasks x their threads / all threads, rounded down."""
    for client, held, share in _shares(look):
        if held < share:
            said = f"{shown(client.client)} runs {held} of its share of {share} stateful tasks"
            yield f"{said}: {_why_below(look, client)}"


def _stalled_warm_ups(look: GroupInspection) -> Iterator[str]:
    """Clients with their share that warm tasks up, while no follow-up rebalance is asked for."""
    if look.next_rebalance_ms != NO_REBALANCE:
        return
    for client, held, share in _shares(look):
        if held >= share and client.warmup:
            copies = "1 copy" if len(client.warmup) == 1 else f"{len(client.warmup)} copies"
            names = few([str(task) for task in client.warmup])
            yield (
                f"{shown(client.client)} warms up {copies} ({names}), and the leader asks for no "
                "follow-up rebalance: what is to move there stays where it is; look at the "
                f"restore of {shown(client.client)}"
            )


def _shares(look: GroupInspection) -> Iterator[tuple[ClientLook, int, int]]:
    """Every client with the stateful tasks that it runs, and its share of them, rounded down."""
    stateful = stateful_subtopologies(look) if look.is_streams else set()
    threads = sum(len(one.members) for one in look.clients)
    runs = {
        one.process: [task for task in one.active if task.subtopology in stateful]
        for one in look.clients
    }
    total = sum(map(len, runs.values()))
    for client in look.clients:
        yield client, len(runs[client.process]), total * len(client.members) // threads


def _why_below(look: GroupInspection, client: ClientLook) -> str:
    warming = client.standby if client.warmup is None else client.warmup
    lags = [client.state_lags[task] for task in warming if task in client.state_lags]
    if not warming:
        return "no copy warms up there; the leader's warnings say why"
    known = [lag for lag in lags if lag is not None]
    far = f", up to {max(known):,} records behind when it joined" if known else ""
    when = "" if look.next_rebalance_ms == NO_REBALANCE else "; the leader looks again by itself"
    copies = "1 copy is" if len(warming) == 1 else f"{len(warming)} copies are"
    return f"{copies} there or on the way{far}{when}"


def _record_size(look: GroupInspection) -> Iterator[str]:
    share = look.record_bytes / look.record_limit
    if share >= NEARLY_FULL:
        yield (
            f"the group's record takes {look.record_bytes:,} of {look.record_limit:,} bytes; "
            "above the limit every rebalance fails: raise max.message.bytes of "
            "__consumer_offsets, or have fewer members or shorter host maps"
        )


def _pins(look: GroupInspection) -> Iterator[str]:
    for holder in look.versions.holders if look.versions else ():
        held = f"{shown(holder.client)} holds the group at version {holder.version}"
        yield f"{held}: {holder.why}; {holder.remedy}"


def _before_probing(look: GroupInspection) -> Iterator[str]:
    low = sorted({one.client for one in look.members if 0 < one.used < EARLIEST_PROBEABLE_VERSION})
    if low:
        yield (
            f"while {few(low)} writes a version below {EARLIEST_PROBEABLE_VERSION}, a JVM leader "
            "cannot probe: a member with a later version than its own ends the whole group"
        )


def _topics_differ(look: GroupInspection) -> Iterator[str]:
    kinds = {one.topics for one in look.members if one.topics}
    if look.is_streams and len(kinds) > 1:
        yield f"members subscribe to {len(kinds)} different sets of topics: is it one topology?"


def _fingerprints_differ(look: GroupInspection) -> Iterator[str]:
    kinds = {one.fingerprint for one in look.members if one.fingerprint}
    if len(kinds) > 1:
        yield f"members of ours run {len(kinds)} different topologies (by their fingerprints)"


def _process_on_two_hosts(look: GroupInspection) -> Iterator[str]:
    for client in look.clients:
        hosts = sorted({_host(one.described.client_host) for one in client.members})
        if len(hosts) > 1:
            yield (
                f"process id {client.process} comes from {few(hosts)}: was a state directory "
                "copied, process id included?"
            )


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def _uncommitted(look: GroupInspection) -> Iterator[str]:
    read = {partition for one in look.members for partition in one.answer.partitions}
    # Of a group without any commit (a new one, or offsets kept elsewhere) there is nothing to say.
    if not look.facts.committed:
        return
    found = [
        f"{one.topic}-{one.partition}"
        for one in sorted(read)
        if look.facts.committed.get(one, NO_OFFSET) == NO_OFFSET
        and look.facts.end_offsets.get(one, 0) > 0
    ]
    if found:
        yield f"{few(found)} has records, and the group never committed an offset there"


def _holes(look: GroupInspection) -> Iterator[str]:
    yield from look.host_map_holes


def _loose(look: GroupInspection) -> Iterator[str]:
    shape = look.shape
    if shape.loose_topics:
        yield f"it does not show which tasks read {few(shape.loose_topics)}: no lag by task there"
    if shape.loose_changelogs:
        yield f"it does not show whose changelogs {few(shape.loose_changelogs)} are"


def _unknown(look: GroupInspection) -> Iterator[str]:
    yield from look.facts.unknown


RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("unreadable", _unreadable),
    ("error", _errors),
    ("shutdown", _shutdown),
    ("owned-twice", _owned_twice),
    ("not-owned", _not_owned),
    ("holds-version", _pins),
    ("before-probing", _before_probing),
    ("record-size", _record_size),
    ("standby-beside-active", _beside_its_active),
    ("below-share", _below_share),
    ("stalled-warm-up", _stalled_warm_ups),
    ("topics-differ", _topics_differ),
    ("topology-differs", _fingerprints_differ),
    ("process-id-twice", _process_on_two_hosts),
    ("host-map", _holes),
    ("uncommitted", _uncommitted),
    ("not-shown", _loose),
    ("not-told", _unknown),
)
"""Kind and rule, worst first."""
