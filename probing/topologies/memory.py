"""The memory of reached versions: which version of the topology a subtopology has reached.

A changed subtopology never returns to its old form by itself, even if every member that ran the new
form is gone. So each member carries the memory in its subscriptions: fingerprint of a form ->
(epoch, version). The highest epoch wins. An operator goes back with the next epoch and a lower
version. A claim that nothing confirms must not stop tasks; see `CLAIM_RULES`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final, NamedTuple

from probing.rules import Rule, Rules, always, first
from probing.topologies.overlap import families

HIGHEST_EPOCH: Final = 2**63 - 2**20
"""Claims of this epoch and above are ignored, so that the next one always fits its field."""

MOST_UNSHARED: Final = 64
"""Entries in an answer of forms that neither the leader nor two processes carry."""

MOST_AHEAD: Final = 2**20
"""Epochs that a claim may be above those that the leader or most processes know.

A change or an operator's return raises the epoch by one, so a group that changes every hour gets
there in a century; and no claim brings the epoch near its limit, where no operator could return.
"""

MOST_ENTRIES: Final = 256
"""Entries that a member keeps: first those of forms that it carries, then those of the highest
epochs."""


class Reached(NamedTuple):
    """A version of the topology that a subtopology has reached; the greater one wins."""

    epoch: int
    version: int


NEVER: Final = Reached(-1, 0)
"""Less than every entry."""

FIRST_EPOCH: Final = 0
"""Epoch of the first version that a subtopology reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A member as the rules see it.

    Attributes:
        member_id: of the member.
        process: its process; claims of one process count once.
        forms: fingerprint of each subtopology that it can run -> versions that contain it.
        reached: what it remembers.
        leads: whether it is the leader that decides.
        writes: form -> repartition topics that the member writes when it runs the form; forms that
            write none can be left out.
    """

    member_id: str
    process: str
    forms: Mapping[bytes, tuple[int, ...]]
    reached: Mapping[bytes, Reached] = field(default_factory=dict)
    leads: bool = False
    writes: Mapping[bytes, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNumbers:
    """Inputs of a row: a claim, and who makes it.

    Attributes:
        epoch: of the claim.
        version: of the claim.
        leader_claims: the deciding leader remembers the same.
        processes: number of processes that remember the same.
        highest_carried: the highest version of which a claimant carries a form of the same family;
            0: none.
        known_epoch: the highest epoch that the leader remembers, or more than half of all
            processes; -1: none.
    """

    epoch: int
    version: int
    leader_claims: bool
    processes: int
    highest_carried: int
    known_epoch: int = -1


CLAIM_RULES: Final[Rules[ClaimNumbers, bool]] = (
    Rule(
        name="impossible number",
        holds=lambda n: not 0 <= n.epoch < HIGHEST_EPOCH or n.version < 1,
        says=False,
        why="epochs are 0 to 2**63 - 2**20 - 1, versions 1 or more",
    ),
    Rule(
        name="the leader remembers it",
        holds=lambda n: n.leader_claims,
        says=True,
        why="the leader itself remembers epoch {epoch}, version {version}",
    ),
    Rule(
        name="an epoch far ahead",
        holds=lambda n: n.epoch > n.known_epoch + MOST_AHEAD,
        says=False,
        why="epoch {epoch} is more than 2**20 above {known_epoch}, the highest one that the leader"
        " or most processes remember",
    ),
    Rule(
        name="two processes remember it",
        holds=lambda n: n.processes > 1,
        says=True,
        why="{processes} processes remember epoch {epoch}, version {version}",
    ),
    Rule(
        name="the claimant can run it",
        holds=lambda n: n.highest_carried >= n.version,
        says=True,
        why="a member that remembers version {version} carries a form of the same family in version"
        " {highest_carried}",
    ),
    Rule(
        name="a single claim",
        holds=always,
        says=False,
        why="one process alone remembers version {version} and cannot run it: nothing waits for it",
    ),
)
"""Whether a claim is believed."""


def believed_memory(
    members: Sequence[Carrier], topics: Mapping[bytes, frozenset[str]]
) -> dict[bytes, Reached]:
    """Return the greatest believed entry of each form.

    Args:
        members: live members.
        topics: fingerprint of each known form -> topics of which one task at a time may use a
            partition; forms that share one are a family.
    """
    making: dict[tuple[bytes, Reached], list[Carrier]] = {}
    for member in members:
        for claim in member.reached.items():
            making.setdefault(claim, []).append(member)
    if not making:
        return {}
    family_of = {form: n for n, family in enumerate(families(topics)) for form in family}
    carried = {member.member_id: _highest_carried(member, family_of) for member in members}
    known_epoch = _known_epoch(members)
    found: dict[bytes, Reached] = {}
    for (form, reached), claimants in sorted(making.items()):
        family = family_of.get(form, _NO_FAMILY)
        numbers = ClaimNumbers(
            epoch=reached.epoch,
            version=reached.version,
            leader_claims=any(member.leads for member in claimants),
            processes=len({member.process for member in claimants}),
            highest_carried=max(carried[m.member_id].get(family, 0) for m in claimants),
            known_epoch=known_epoch,
        )
        if first(CLAIM_RULES, numbers).says:
            found[form] = max(reached, found.get(form, reached))
    return found


_NO_FAMILY: Final = -1


def _highest_carried(member: Carrier, family_of: Mapping[bytes, int]) -> dict[int, int]:
    """Family -> the highest version of which a member carries a form of the family."""
    highest: dict[int, int] = {}
    for form, versions in member.forms.items():
        family = family_of.get(form, _NO_FAMILY)
        if family != _NO_FAMILY:
            highest[family] = max(highest.get(family, 0), *versions)
    return highest


def _known_epoch(members: Sequence[Carrier]) -> int:
    """The highest epoch that the leader remembers, or more than half of all processes."""
    by_process: dict[str, int] = {}
    leader = -1
    for member in members:
        highest = max((reached.epoch for reached in member.reached.values()), default=-1)
        # The least of its members: a member that gives the id of another process raises nothing.
        by_process[member.process] = min(highest, by_process.get(member.process, highest))
        leader = max(leader, highest) if member.leads else leader
    epochs = sorted(by_process.values(), reverse=True)
    return max(leader, epochs[len(epochs) // 2])


def greatest(*memories: Mapping[bytes, Reached]) -> dict[bytes, Reached]:
    """Return the greatest entry of each form, of all forms."""
    merged: dict[bytes, Reached] = {}
    for memory in memories:
        for form, reached in memory.items():
            merged[form] = max(reached, merged.get(form, reached))
    return merged


def newest_memory(
    *memories: Mapping[bytes, Reached],
    first: Collection[bytes] = (),
    then: Collection[bytes] = (),
) -> dict[bytes, Reached]:
    """Return the greatest entry of each form, of at most `MOST_ENTRIES` forms.

    Args:
        memories: to be merged.
        first: forms whose entries are kept before those of others.
        then: forms whose entries are kept next. Of all others, the highest epochs are kept.
    """
    kept = sorted(
        greatest(*memories).items(),
        key=lambda entry: (entry[0] in first, entry[0] in then, entry[1], entry[0]),
        reverse=True,
    )
    return dict(sorted(kept[:MOST_ENTRIES]))


def lacks(kept: Mapping[bytes, Reached], memory: Mapping[bytes, Reached]) -> bool:
    """Return whether a memory has a greater entry of any form than what is kept."""
    return any(kept.get(form, NEVER) < reached for form, reached in memory.items())


def answered_memory(
    memory: Mapping[bytes, Reached], members: Sequence[Carrier]
) -> dict[bytes, Reached]:
    """Return the entries that answers contain, in an order that no single process can abuse.

    All entries of forms that the leader or two processes carry are kept. `MOST_UNSHARED` others
    follow: of the forms that one process alone carries, one of each process in turn; then of those
    that no member carries, the ones that most processes remember.

    Args:
        memory: what is believed.
        members: live members that can run tasks.
    """
    processes: dict[bytes, set[str]] = {}
    remembering: dict[bytes, set[str]] = {}
    for member in members:
        for form in member.forms:
            processes.setdefault(form, set()).add(member.process)
        for form in member.reached:
            remembering.setdefault(form, set()).add(member.process)
    own = {form for member in members if member.leads for form in member.forms}
    shared = own | {form for form, found in processes.items() if len(found) > 1}

    def newest_first(forms: AbstractSet[bytes]) -> list[bytes]:
        return sorted(forms, key=lambda form: (memory[form], form), reverse=True)

    by_process: dict[str, list[bytes]] = {}
    for form in newest_first(memory.keys() & processes.keys() - shared):
        by_process.setdefault(min(processes[form]), []).append(form)
    turns = zip_longest(*(by_process[process] for process in sorted(by_process)))
    others = [form for turn in turns for form in turn if form is not None]
    others += sorted(
        newest_first(memory.keys() - shared - processes.keys()),
        key=lambda form: -len(remembering.get(form, ())),
    )
    kept = shared | {*others[:MOST_UNSHARED]}
    return newest_memory({f: r for f, r in memory.items() if f in kept}, first=shared)


def credible(
    memory: Mapping[bytes, Reached], known_epoch: int, *, ahead: int = MOST_AHEAD
) -> dict[bytes, Reached]:
    """Return the entries of a memory that a change or an operator's return can have written.

    Args:
        memory: found where others may write, too.
        known_epoch: the highest epoch that the reader remembers; -1: none.
        ahead: epochs that an entry may be above it.
    """
    most = min(known_epoch + ahead, HIGHEST_EPOCH - 1)
    return {form: reached for form, reached in memory.items() if reached.epoch <= most}


def next_reached(entry: Reached | None, version: int) -> Reached:
    """Return the entry of a version that is reached now; the epoch is one that leaders believe.

    At the last such epoch a lower version cannot replace a higher one: the entry stays.
    """
    if entry is None:
        return Reached(FIRST_EPOCH, version)
    return max(entry, Reached(min(entry.epoch + 1, HIGHEST_EPOCH - 1), version))


def lowered(
    memory: Mapping[bytes, Reached],
    forms: Iterable[bytes],
    version: int,
    *,
    first: Collection[bytes] = (),
) -> dict[bytes, Reached]:
    """Return the memory after an operator's return of forms to a version, with the next epoch.

    Leaders believe the epoch: it is below `HIGHEST_EPOCH`. Entries that leaders ignore are dropped.
    At most `MOST_ENTRIES` are kept: those of `first`, then those that return.
    """
    possible = {f: reached for f, reached in memory.items() if reached.epoch < HIGHEST_EPOCH}
    epoch = 1 + max((reached.epoch for reached in possible.values()), default=-1)
    epoch = min(epoch, HIGHEST_EPOCH - 1)
    returned = dict.fromkeys(forms, Reached(epoch, version))
    return newest_memory(
        {form: reached for form, reached in possible.items() if form not in returned},
        returned,
        first=first,
        then=returned.keys(),
    )
