"""The topologies of a group: who runs which form of a subtopology, and what waits for what.

Native members whose topology is not the leader's describe their subtopologies, and a native
leader's answers name the content of each task's subtopology (docs/topologies.md). Members that
describe nothing are known by their tasks only.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice

from assignor.inspection.topology_values import FamilyLook, FormLook, TopologiesLook
from assignor.inspection.values import ClusterFacts, MemberLook, Shape
from assignor.topology import Subtopology, content_fingerprint
from encoding import TopicPartition
from probing.features import TOPOLOGY_VERSION
from probing.topologies import Carrier, FamilyDecision, Reached, decide_forms, greatest

MOST_FORMS = 1024
"""Forms that are shown: those that a leader numbers, too."""

_MOST_WAITING = 10_000


@dataclass(slots=True, kw_only=True)
class _Form:
    """What the members' blobs say about a form, while they are read."""

    number: int | None = None
    part: Subtopology | None = None
    versions: set[int] = field(default_factory=set)
    carriers: dict[str, set[int]] = field(default_factory=dict)
    writes: dict[str, frozenset[str]] = field(default_factory=dict)
    running: dict[str, set[int]] = field(default_factory=dict)

    def sources(self, shape: Shape) -> tuple[str, ...]:
        """Its source topics: as described, else as its tasks show them."""
        if self.part is not None:
            return self.part.source_topics
        return () if self.number is None else shape.sources.get(self.number, ())

    def changelogs(self, shape: Shape) -> tuple[str, ...]:
        """Its changelogs, likewise."""
        if self.part is not None:
            return self.part.changelog_topics
        return () if self.number is None else shape.changelogs.get(self.number, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """What members read and write.

    Attributes:
        shape: sources of the subtopologies that nobody describes.
        facts: partitions of topics.
        read: partitions that are assigned to members.
        written: topics that members write in the forms that they run, as far as it is known.
    """

    shape: Shape
    facts: ClusterFacts
    read: AbstractSet[TopicPartition]
    written: AbstractSet[str]


def look_at_topologies(
    members: Sequence[MemberLook], shape: Shape, facts: ClusterFacts
) -> TopologiesLook | None:
    """Return the topologies; None if all members have one of version 1, and nothing is remembered.

    Args:
        members: of a Streams group.
        shape: sources of the subtopologies that nobody describes.
        facts: partitions of topics; partitions of unknown topics are never waiting.
    """
    natives = [member for member in members if member.fingerprint]
    programs = {(member.fingerprint, member.topology_version) for member in natives}
    is_plain = all(m.topology_version == 1 and not m.answer.reached for m in natives)
    if is_plain and len(programs) <= 1:
        return None
    processes: dict[int, set[str]] = {}
    for member in natives:
        processes.setdefault(member.topology_version, set()).add(member.process)
    forms = _forms(natives)
    inputs = _Inputs(
        shape=shape,
        facts=facts,
        read={partition for member in members for partition in member.answer.partitions},
        written={
            t for form in forms.values() for p in form.running for t in form.writes.get(p, ())
        },
    )
    memory = greatest(*(member.answer.reached for member in natives))
    described = {member.fingerprint for member in natives if member.carried is not None}
    undescribed = {m.process for m in members if m.fingerprint not in described}
    return TopologiesLook(
        processes={version: tuple(sorted(processes[version])) for version in sorted(processes)},
        undescribed=tuple(sorted(undescribed)),
        families=tuple(_families(forms, memory, _level(natives), inputs)),
        reached=_reached(memory, max(processes)),
    )


def _reached(memory: Mapping[bytes, Reached], newest: int) -> Reached | None:
    return max((entry for entry in memory.values() if entry.version > newest), default=None)


def _forms(natives: Sequence[MemberLook]) -> dict[bytes, _Form]:
    """Every form that a member describes, or that a task runs in."""
    forms: dict[bytes, _Form] = {}
    for member in natives:
        for part, versions in _carried(member):
            form = forms.setdefault(content_fingerprint(part), _Form())
            form.part = part
            form.versions |= {*versions}
            form.carriers.setdefault(member.process, set()).update(versions)
            form.writes[member.process] = frozenset(part.sink_topics)
    by_program: dict[str, set[bytes]] = {}
    for member in natives:
        by_program.setdefault(member.fingerprint, set()).update(_add_running(member, forms))
    for member in natives:
        # A form that nobody describes is of all programs with a member that runs it.
        for fingerprint in by_program[member.fingerprint] if member.carried is None else ():
            form = forms[fingerprint]
            form.carriers.setdefault(member.process, set()).add(member.topology_version)
            if form.part is None:
                form.versions.add(member.topology_version)
    return dict(islice(sorted(forms.items(), key=_by_number), MOST_FORMS))


def _add_running(member: MemberLook, forms: dict[bytes, _Form]) -> set[bytes]:
    """Add the tasks of a member; return the forms that it runs."""
    running: dict[int, set[int]] = {}
    for task in member.answer.active:
        running.setdefault(task.subtopology, set()).add(task.partition)
    found = set()
    # Where all members have one topology, tasks have its numbers and the leader names no content.
    own = [content_fingerprint(part) for part, _ in _carried(member)]
    for number, fingerprint in enumerate(member.answer.numbered_by or own):
        if number not in running and fingerprint not in forms:
            continue
        form = forms.setdefault(fingerprint, _Form())
        form.number = number if form.number is None else min(number, form.number)
        if number in running:
            form.running.setdefault(member.process, set()).update(running[number])
            found.add(fingerprint)
    return found


def _carried(member: MemberLook) -> Iterable[tuple[Subtopology, tuple[int, ...]]]:
    if member.carried is None:
        return ()
    return zip(member.carried.subtopologies, member.carried.versions, strict=True)


def _by_number(entry: tuple[bytes, _Form]) -> tuple[bool, int, bytes]:
    fingerprint, form = entry
    return form.number is None, form.number or 0, fingerprint


def _families(
    forms: Mapping[bytes, _Form],
    memory: Mapping[bytes, Reached],
    level: int | None,
    inputs: _Inputs,
) -> Iterable[FamilyLook]:
    """The families, as a leader decides them that remembers what the answers say."""
    running: dict[str, set[bytes]] = {}
    for fingerprint, form in forms.items():
        for process in form.running:
            running.setdefault(process, set()).add(fingerprint)
    decisions = decide_forms(
        _carriers(forms),
        {
            fingerprint: frozenset((*form.sources(inputs.shape), *form.changelogs(inputs.shape)))
            for fingerprint, form in forms.items()
        },
        level=level,
        running={process: frozenset(found) for process, found in running.items()},
        believe=lambda *_: dict(memory),
    ).families
    order = list(forms)
    for decision in sorted(decisions, key=lambda d: min(map(order.index, d.forms))):
        yield _family(decision, forms, memory, inputs)


def _family(
    decision: FamilyDecision,
    forms: Mapping[bytes, _Form],
    memory: Mapping[bytes, Reached],
    inputs: _Inputs,
) -> FamilyLook:
    own = {
        fingerprint: forms[fingerprint] for fingerprint in forms if fingerprint in decision.forms
    }
    looks = sorted(
        (_form(fingerprint, form, inputs.shape, decision) for fingerprint, form in own.items()),
        key=lambda look: (look.versions, look.fingerprint),
    )
    old = {p for f, form in own.items() if f not in decision.wanted for p in form.running}
    entry = max((memory[fingerprint] for fingerprint in own if fingerprint in memory), default=None)
    return FamilyLook(
        forms=tuple(looks),
        version=decision.version,
        epoch=None if entry is None else entry.epoch,
        why=decision.why,
        reached=None if entry is None else entry.version,
        held_by=tuple(sorted(old)),
        waiting=_waiting(own.values(), inputs),
    )


def _form(fingerprint: bytes, form: _Form, shape: Shape, decision: FamilyDecision) -> FormLook:
    return FormLook(
        fingerprint=fingerprint.hex(),
        number=form.number,
        sources=form.sources(shape),
        changelogs=form.changelogs(shape),
        versions=tuple(sorted(form.versions)),
        carriers=tuple(sorted(form.carriers)),
        running={name: tuple(sorted(form.running[name])) for name in sorted(form.running)},
        wanted=fingerprint in decision.wanted,
    )


def _carriers(forms: Mapping[bytes, _Form]) -> list[Carrier]:
    found: dict[str, dict[bytes, tuple[int, ...]]] = {}
    writes: dict[str, dict[bytes, frozenset[str]]] = {}
    for fingerprint, form in forms.items():
        for process, versions in form.carriers.items():
            found.setdefault(process, {})[fingerprint] = tuple(sorted(versions))
        for process, topics in form.writes.items():
            writes.setdefault(process, {})[fingerprint] = topics
    return [
        Carrier(member_id=name, process=name, forms=found[name], writes=writes.get(name, {}))
        for name in sorted(found)
    ]


def _level(natives: Sequence[MemberLook]) -> int | None:
    levels = max((m.answer.levels for m in natives), key=lambda known: known.epoch, default=None)
    return None if levels is None else levels.levels.get(TOPOLOGY_VERSION)


def _waiting(forms: Iterable[_Form], inputs: _Inputs) -> tuple[TopicPartition, ...]:
    """Source partitions of a family that no member reads.

    Repartition topics that no running form writes are left out.
    """
    topics: set[str] = set()
    for form in forms:
        internal = {topic.name for topic in form.part.repartition_topics} if form.part else set()
        topics.update({*form.sources(inputs.shape)} - (internal - inputs.written))
    unread = (
        partition
        for topic in sorted(topics & inputs.facts.topics.keys())
        for number in range(inputs.facts.topics[topic].partitions)
        if (partition := TopicPartition(topic, number)) not in inputs.read
    )
    return tuple(islice(unread, _MOST_WAITING))
