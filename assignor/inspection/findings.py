"""Problems and risks of a group, as sentences for operators, worst first.

Each rule of `RULES` checks the whole group and yields a sentence for each finding. The kind of a
rule is for programs; its meaning never changes.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from assignor.inspection.offsets import (
    before_start,
    beyond_end,
    committed_partitions,
    missing_topics,
    partition_counts,
    read_by_no_member,
)
from assignor.inspection.routing import few
from assignor.inspection.tasks import stateful_subtopologies
from assignor.inspection.values import NO_OFFSET, ClientLook, Finding, GroupInspection
from encoding import NO_REBALANCE, AssignorError, shown
from probing import EARLIEST_PROBEABLE_VERSION

NEARLY_FULL: Final = 0.8
"""The size of the group's record is a finding from this share of the broker's limit on."""

_NATIVE_LEADER: Final = "the leader's log has a warning if copies make no progress or do not fit"
_JVM_LEADERS: Final = (
    "a leader before 2.6, or with StickyTaskAssignor or a TaskAssignor of its own, balances tasks"
    " with and without state together; with another leader, see its log"
)

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


def _cannot_read(look: GroupInspection) -> Iterator[str]:
    for member in look.members:
        version = member.answer.version
        if member.native is None and 0 < member.supported < version:
            yield (
                f"{shown(member.client)} was given an assignment in version {version} and reads up"
                f" to {member.supported}: its program ends; stop it, wait for its session to"
                " expire, then start it again"
            )


def _errors(look: GroupInspection) -> Iterator[str]:
    for code in sorted({member.answer.error_code for member in look.members} - {0}):
        names = sorted(
            {member.client for member in look.members if member.answer.error_code == code}
        )
        known = {error.value: error.name for error in AssignorError}
        yield f"the leader answered error {code} ({known.get(code, 'unknown')}) to {few(names)}"


def _shutdown(look: GroupInspection) -> Iterator[str]:
    if names := sorted({member.client for member in look.members if member.wants_shutdown}):
        yield f"{few(names)} asks the whole application to stop (KIP-671)"


def _owned_twice(look: GroupInspection) -> Iterator[str]:
    found = [str(entry.task) for entry in look.tasks if len(entry.owners) > 1]
    if found:
        yield f"task {few(found)} runs on more than one process"


def _not_owned(look: GroupInspection) -> Iterator[str]:
    found = [str(entry.task) for entry in look.tasks if not entry.owners]
    if found:
        why = "it waits for its old owner, or the leader has not assigned it"
        if any(partition_counts(look)):
            why = "partitions were added, see below"
        yield f"task {few(found)} runs nowhere: {why}"


def _no_task(look: GroupInspection) -> Iterator[str]:
    if look.is_streams and look.described.state == "Stable" and not look.tasks:
        yield "no task runs"


def _source_topics(look: GroupInspection) -> Iterator[str]:
    subscribed = {topic for member in look.members for topic in member.topics}
    missing = sorted(subscribed - look.facts.topics.keys())
    if look.facts.has_topics and missing:
        yield (
            f"subscribed topic {few(missing)} does not exist, or you may not describe it: tasks"
            " that read it do not run; create it, or grant DESCRIBE on it"
        )
    yield from missing_topics(look)


def _beside_its_active(look: GroupInspection) -> Iterator[str]:
    found = [str(entry.task) for entry in look.tasks if set(entry.owners) & set(entry.standbys)]
    if found:
        yield f"task {few(found)} has its standby on the process that runs it"


def _below_share(look: GroupInspection) -> Iterator[str]:
    """Clients with fewer stateful tasks than tasks x their threads / all threads, rounded down.

    While members run different topologies, each set of members that can run a task shares it.
    """
    if look.topologies is not None and len(look.topologies.processes) > 1:
        return
    for client, held, share in _shares(look):
        if held < share:
            share_text = (
                f"{shown(client.client)} runs {held} of its share of {share} stateful tasks"
            )
            yield f"{share_text}: {_why_below(look, client)}"


def _stalled_warm_ups(look: GroupInspection) -> Iterator[str]:
    """Clients with their full share and warm-ups, while no follow-up rebalance is requested."""
    if look.next_rebalance_ms != NO_REBALANCE:
        return
    for client, held, share in _shares(look):
        if held >= share and client.warmup:
            copies = "1 copy" if len(client.warmup) == 1 else f"{len(client.warmup)} copies"
            names = few([str(task) for task in client.warmup])
            yield (
                f"{shown(client.client)} warms up {copies} ({names}), and the leader schedules no "
                "follow-up rebalance: these tasks do not move; check why "
                f"{shown(client.client)} does not finish restoring"
            )


def _shares(look: GroupInspection) -> Iterator[tuple[ClientLook, int, int]]:
    """Every client with the number of stateful tasks it runs, and its share, rounded down."""
    stateful = stateful_subtopologies(look) if look.is_streams else set()
    threads = sum(len(client.members) for client in look.clients)
    runs = {
        client.process: [task for task in client.active if task.subtopology in stateful]
        for client in look.clients
    }
    total = sum(map(len, runs.values()))
    for client in look.clients:
        yield client, len(runs[client.process]), total * len(client.members) // threads


def _why_below(look: GroupInspection, client: ClientLook) -> str:
    warming = client.warmup or client.standby
    lags = [client.state_lags[task] for task in warming if task in client.state_lags]
    if not warming:
        is_native = all(member.native is not None for member in look.members)
        return f"no copy warms up on it; {_NATIVE_LEADER if is_native else _JVM_LEADERS}"
    known = [lag for lag in lags if lag is not None]
    far = f", up to {max(known):,} records behind when it joined" if known else ""
    when = (
        ""
        if look.next_rebalance_ms == NO_REBALANCE
        else "; the leader schedules a rebalance for it"
    )
    copies = "1 copy is" if len(warming) == 1 else f"{len(warming)} copies are"
    return f"{copies} there or on the way{far}{when}"


def _record_size(look: GroupInspection) -> Iterator[str]:
    share = look.record_bytes / look.record_limit
    if share >= NEARLY_FULL:
        yield (
            f"the group's record takes {look.record_bytes:,} of {look.record_limit:,} bytes; "
            "above the limit every rebalance fails: raise max.message.bytes of "
            "__consumer_offsets, or reduce members or host maps"
        )


def _pins(look: GroupInspection) -> Iterator[str]:
    for holder in look.versions.holders if look.versions else ():
        held = f"{shown(holder.client)} limits the group to version {holder.version}"
        yield f"{held}: {holder.why}; {holder.remedy}"


def _before_probing(look: GroupInspection) -> Iterator[str]:
    low = sorted(
        {member.client for member in look.members if 0 < member.used < EARLIEST_PROBEABLE_VERSION}
    )
    if low:
        yield (
            f"while {few(low)} writes a version below {EARLIEST_PROBEABLE_VERSION}, a JVM leader "
            "cannot probe: a member with a later version than its own ends the whole group"
        )


def _topics_differ(look: GroupInspection) -> Iterator[str]:
    kinds = {member.topics for member in look.members if member.topics}
    if look.is_streams and len(kinds) > 1:
        yield f"members subscribe to {len(kinds)} sets of topics; check that all run one topology"


def _fingerprints_differ(look: GroupInspection) -> Iterator[str]:
    kinds = {member.fingerprint for member in look.members if member.fingerprint}
    if len(kinds) > 1:
        programs = _by_program(look)
        count = Counter(version for version, _ in programs)
        versions = "; ".join(
            f"version {version}{f' ({fingerprint[:8]})' if count[version] > 1 else ''}"
            f" on {few(sorted(members))}"
            for (version, fingerprint), members in sorted(programs.items())
        )
        yield (
            f"native members run {len(kinds)} different topologies (by their fingerprints):"
            f" {versions}"
        )


def _waiting_partitions(look: GroupInspection) -> Iterator[str]:
    for family in () if look.topologies is None else look.topologies.families:
        # Of a form that the leader does not number yet, or in a rebalance, nothing can be said.
        if family.waiting and family.is_changing and look.described.state == "Stable":
            names = few([f"{row.topic}-{row.partition}" for row in family.waiting])
            yield f"no member reads {names}: {family.why}"


def _reached_by_no_member(look: GroupInspection) -> Iterator[str]:
    found = look.topologies
    reached = None if found is None else found.reached
    if found is not None and reached is not None and not any(f.waiting for f in found.families):
        yield (
            f"version {reached.version} of the topology was reached in epoch {reached.epoch}, and"
            " no member carries it or a later one: partitions of changed subtopologies wait as soon"
            " as no member runs them; start a member with that version, or go back with assignor"
            " features downgrade-topology"
        )


def _lowered(look: GroupInspection) -> Iterator[str]:
    """Families of which an older version is remembered than any live member carries."""
    families = () if look.topologies is None else look.topologies.families
    versions = {(f.reached, f.version) for f in families if f.reached and f.version}
    for reached, version in sorted(versions):
        if reached < version:
            yield (
                f"version {reached} of the topology is remembered as reached, and all members carry"
                f" version {version}: to go back, bounce them to version {reached}; to stay,"
                f" finalize topology.version={version} with assignor features upgrade"
            )


def _by_program(look: GroupInspection) -> dict[tuple[int, str], list[str]]:
    """Version and fingerprint of the topology -> names of the native members that run it."""
    found: dict[tuple[int, str], list[str]] = {}
    for member in look.members:
        if member.fingerprint:
            program = (member.topology_version, member.fingerprint)
            found.setdefault(program, []).append(member.client)
    return found


def _process_on_two_hosts(look: GroupInspection) -> Iterator[str]:
    for client in look.clients:
        hosts = sorted({_host(member.described.client_host) for member in client.members})
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
    facts = look.facts
    # A group without any commit is new, or stores its offsets elsewhere.
    if not facts.committed:
        return
    read = {partition for member in look.members for partition in member.answer.partitions}
    if not look.members:
        topics = {row.topic for row in committed_partitions(look)}
        read = {row for row in facts.end_offsets if row.topic in topics}
    found = [
        f"{partition.topic}-{partition.partition}"
        for partition in sorted(read)
        if facts.committed.get(partition, NO_OFFSET) == NO_OFFSET
        and facts.end_offsets.get(partition, 0) > 0
    ]
    if found:
        yield (
            f"{few(found)} has records, but the group has no committed offset there: its lag does"
            " not count them"
        )


def _holes(look: GroupInspection) -> Iterator[str]:
    yield from look.host_map_holes


def _loose(look: GroupInspection) -> Iterator[str]:
    shape = look.shape
    if shape.loose_topics:
        yield f"unknown which tasks read {few(shape.loose_topics)}: no lag by task there"
    if shape.loose_changelogs:
        yield f"unknown which tasks have the changelogs {few(shape.loose_changelogs)}"


def _unknown(look: GroupInspection) -> Iterator[str]:
    yield from look.facts.unknown


RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("unreadable", _unreadable),
    ("cannot-read", _cannot_read),
    ("error", _errors),
    ("shutdown", _shutdown),
    ("owned-twice", _owned_twice),
    ("not-owned", _not_owned),
    ("no-task", _no_task),
    ("source-topic", _source_topics),
    ("holds-version", _pins),
    ("before-probing", _before_probing),
    ("record-size", _record_size),
    ("standby-beside-active", _beside_its_active),
    ("below-share", _below_share),
    ("stalled-warm-up", _stalled_warm_ups),
    ("topics-differ", _topics_differ),
    ("topology-waits", _waiting_partitions),
    ("topology-reached", _reached_by_no_member),
    ("topology-lowered", _lowered),
    ("topology-differs", _fingerprints_differ),
    ("process-id-twice", _process_on_two_hosts),
    ("host-map", _holes),
    ("partition-counts", partition_counts),
    ("beyond-end", beyond_end),
    ("before-start", before_start),
    ("uncommitted", _uncommitted),
    ("not-read", read_by_no_member),
    ("not-shown", _loose),
    ("not-told", _unknown),
)
"""Kind and rule, worst first."""
