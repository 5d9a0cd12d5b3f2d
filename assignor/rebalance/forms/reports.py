"""What members report about their topologies, and the memory that they report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from encoding import Subscription
from encoding.native import ReachedRow, SubtopologyRow
from probing.topologies import HIGHEST_EPOCH, Reached, newest_memory

NOTHING_REACHED: Mapping[bytes, Reached] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyReport:
    """What a member reports about its topology; a JVM member reports nothing.

    Attributes:
        member_id: of the member.
        process: its process.
        is_native: its native fields can be read.
        is_jvm: it is a member of Kafka's.
        fingerprint: of all that it carries; empty: it has no topology.
        version: the highest version that it carries.
        rows: description of what it carries; empty: it does not describe it.
        reached: what it remembers.
        taken_generation: of the last answer that it took, -1: none since it joined anew; None: its
            layout does not tell.
    """

    member_id: str
    process: str
    is_native: bool = False
    is_jvm: bool = False
    fingerprint: bytes = b""
    version: int = 1
    rows: tuple[SubtopologyRow, ...] = ()
    reached: Mapping[bytes, Reached] = field(default_factory=dict)
    taken_generation: int | None = None


def report_of(member_id: str, value: Subscription) -> TopologyReport:
    """Return what a subscription says about the topology of its writer."""
    native, process = value.native, str(value.process_id)
    if native is None:
        return TopologyReport(member_id=member_id, process=process, is_jvm=True)
    return TopologyReport(
        member_id=member_id,
        process=process,
        is_native=native.is_readable,
        fingerprint=native.fingerprint,
        version=native.topology_version,
        rows=native.carried,
        reached=reached_of(native.reached_versions),
        taken_generation=(native.owned_generation if native.carries("owned_generation") else None),
    )


def reached_of(rows: Sequence[ReachedRow]) -> dict[bytes, Reached]:
    """Return the memory that a peer reports, without impossible entries."""
    return newest_memory(
        {
            form: Reached(epoch, version)
            for form, epoch, version in rows
            if epoch < HIGHEST_EPOCH and 1 <= version < 2**31
        }
    )


def reached_rows(memory: Mapping[bytes, Reached]) -> tuple[ReachedRow, ...]:
    """Return the rows of a memory."""
    return tuple(ReachedRow(form, *memory[form]) for form in sorted(memory))
