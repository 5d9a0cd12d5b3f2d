"""The memory of reached versions: which version of the topology a subtopology has reached.

A changed subtopology never returns to its old form by itself, even if every member that ran the new
form is gone. So each member carries the memory in its subscriptions: fingerprint of a form ->
(epoch, version). The highest epoch wins. An operator goes back with the next epoch and a lower
version. A claim that nothing confirms must not stop tasks; see `CLAIM_RULES`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

HIGHEST_EPOCH: Final = 2**62
"""Claims of this epoch and above are ignored, so that the next one always fits its field."""

MOST_ENTRIES: Final = 256
"""Entries that a member keeps; those of the highest epochs stay."""


class Reached(NamedTuple):
    """A version of the topology that a subtopology has reached; the greater one wins."""

    epoch: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A member as the rules see it.

    Attributes:
        member_id: of the member.
        process: its process; claims of one process count once.
        forms: fingerprint of each subtopology that it can run -> versions that contain it.
        reached: what it remembers.
        leads: whether it is the leader that decides.
    """

    member_id: str
    process: str
    forms: Mapping[bytes, tuple[int, ...]]
    reached: Mapping[bytes, Reached] = field(default_factory=dict)
    leads: bool = False

    @property
    def highest_version(self) -> int:
        """The highest version of the topology that it carries; 0: none."""
        return max((version for found in self.forms.values() for version in found), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNumbers:
    """Inputs of a row: a claim, and who makes it.

    Attributes:
        epoch: of the claim.
        version: of the claim.
        leader_claims: the deciding leader remembers the same.
        processes: number of processes that remember the same.
        highest_carried: the highest version that a claimant can run itself.
    """

    epoch: int
    version: int
    leader_claims: bool
    processes: int
    highest_carried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRule:
    """One row: its condition, whether the claim is believed, and the sentence for people."""

    name: str
    holds: Callable[[ClaimNumbers], bool]
    believed: bool
    why: str


CLAIM_RULES: Final = (
    ClaimRule(
        name="impossible number",
        holds=lambda n: not 0 <= n.epoch < HIGHEST_EPOCH or n.version < 1,
        believed=False,
        why="epochs are 0 to 2**62 - 1, versions 1 or more",
    ),
    ClaimRule(
        name="the leader remembers it",
        holds=lambda n: n.leader_claims,
        believed=True,
        why="the leader itself remembers epoch {epoch}, version {version}",
    ),
    ClaimRule(
        name="two processes remember it",
        holds=lambda n: n.processes > 1,
        believed=True,
        why="{processes} processes remember epoch {epoch}, version {version}",
    ),
    ClaimRule(
        name="the claimant can run it",
        holds=lambda n: n.highest_carried >= n.version,
        believed=True,
        why="a member that remembers version {version} can run version {highest_carried}",
    ),
    ClaimRule(
        name="a single claim",
        holds=lambda _: True,
        believed=False,
        why="one process alone remembers version {version} and cannot run it: nothing waits for it",
    ),
)


def claim_rule(numbers: ClaimNumbers) -> ClaimRule:
    """Return the row that decides whether a claim is believed."""
    return next(rule for rule in CLAIM_RULES if rule.holds(numbers))


def believed_memory(members: Sequence[Carrier]) -> dict[bytes, Reached]:
    """Return the greatest believed entry of each form."""
    found: dict[bytes, Reached] = {}
    highest = {member.member_id: member.highest_version for member in members}
    claims = {claim for member in members for claim in member.reached.items()}
    for form, reached in sorted(claims):
        making = [member for member in members if member.reached.get(form) == reached]
        numbers = ClaimNumbers(
            epoch=reached.epoch,
            version=reached.version,
            leader_claims=any(member.leads for member in making),
            processes=len({member.process for member in making}),
            highest_carried=max(highest[member.member_id] for member in making),
        )
        if claim_rule(numbers).believed:
            found[form] = max(reached, found.get(form, reached))
    return found


def newest_memory(*memories: Mapping[bytes, Reached]) -> dict[bytes, Reached]:
    """Return the greatest entry of each form, at most `MOST_ENTRIES` of the highest epochs."""
    merged: dict[bytes, Reached] = {}
    for memory in memories:
        for form, reached in memory.items():
            merged[form] = max(reached, merged.get(form, reached))
    kept = sorted(merged.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    return dict(sorted(kept[:MOST_ENTRIES]))


def lowered(
    memory: Mapping[bytes, Reached], forms: Iterable[bytes], version: int
) -> dict[bytes, Reached]:
    """Return the memory after an operator's return of forms to a version, with the next epoch."""
    epoch = 1 + max((reached.epoch for reached in memory.values()), default=-1)
    return newest_memory(memory, dict.fromkeys(forms, Reached(epoch, version)))
