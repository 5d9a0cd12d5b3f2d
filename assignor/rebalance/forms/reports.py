"""What members report about their topologies, and the memory that they report."""

from collections.abc import Mapping, Sequence

from assignor.topology import HIGHEST_VERSION
from encoding import NativeSubscription, Subscription
from encoding.native import ReachedRow
from probing.topologies import HIGHEST_EPOCH, Reached, newest_memory

ProgramKey = tuple[bytes, int]
"""Fingerprint and highest version of a program."""

_NOTHING = NativeSubscription()


def report_of(value: Subscription) -> NativeSubscription:
    """Return the native fields of a subscription; a JVM member reports nothing."""
    return value.native or _NOTHING


def has_valid_version(value: Subscription) -> bool:
    """Return whether a topology can have the version that a member reports."""
    return 1 <= report_of(value).topology_version <= HIGHEST_VERSION


def key_of(value: Subscription, own_key: ProgramKey) -> ProgramKey:
    """Return what identifies a member's program; a member that names none has the leader's."""
    native = report_of(value)
    return (native.fingerprint, native.topology_version) if native.fingerprint else own_key


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
