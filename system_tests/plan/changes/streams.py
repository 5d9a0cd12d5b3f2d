"""What changes in a streams group (KIP-1071), by the releases of its members and its brokers."""

from dataclasses import replace

from probing import Release, find_release
from system_tests.plan.changes.model import Of, PathChange, Subject, changes_between
from system_tests.plan.changes.rows import STREAMS_CHANGES
from system_tests.plan.uses import Use


def streams_changes(
    members: tuple[Release, Release],
    brokers: tuple[Release, Release],
    uses: frozenset[Use],
    *,
    is_new: bool = False,
) -> tuple[PathChange, ...]:
    """Return what changes in a streams group, each row by the release of whom it is a fact.

    Args:
        members: their releases before and after.
        brokers: their releases before and after.
        uses: features of the application.
        is_new: the group had the classic protocol before, so that every row is a change.
    """
    before = find_release("4.1")  # without the protocol
    pairs = [(before, end) if is_new else (start, end) for start, end in (members, brokers)]
    both = tuple(min(ends, key=lambda release: release.order) for ends in zip(*pairs, strict=True))
    found: list[PathChange] = []
    for of, stops in ((Of.MEMBERS, pairs[0]), (Of.BROKERS, pairs[1]), (Of.BOTH, both)):
        rows = [row for row in STREAMS_CHANGES if row.of is of]
        changes = changes_between(stops, uses, rows) if stops[0].order != stops[-1].order else ()
        prefix = "brokers " if of is Of.BROKERS else ""
        found += [replace(change, release=f"{prefix}{change.release}") for change in changes]
    return tuple(sorted(found, key=lambda change: list(Subject).index(change.subject)))
