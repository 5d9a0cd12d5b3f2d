"""Formats beside the rebalance protocol: of state on disk, and of records in internal topics.

Some are one-way: a group that returns below a release deletes its state, or resets the application.
Others are kept at their former layout by `upgrade.from`, or by nothing, so that no rolling bounce
is possible. The rows are in `probing/releases/releases.toml`, each with its evidence.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from probing import Release, find_release
from probing import upgrades as data
from system_tests.plan.uses import Use


def deletions(rows: Iterable[data.OneWayFormat], release: Release) -> tuple[str, ...]:
    """Return why the state directories are deleted before a release is started; often nothing."""
    reasons = "; ".join(f"since {row.since} {row.what}" for row in rows)
    if not reasons:
        return ()
    return (
        (
            f"delete the state directories before you start {release.name}, which cannot read them:"
            f" {reasons}; its members restore from the changelogs"
        ),
    )


def evidence_of(row: data.OneWayFormat) -> str:
    """Return the change of a format of state on disk, with its evidence."""
    return f"since {row.since} {row.what} {row.evidence}"


def changed_formats(
    first: Release, second: Release, uses: Collection[Use]
) -> tuple[data.FormatRow, ...]:
    """Return the application's formats in internal topics that change between two releases."""
    return tuple(row for row in data.formats_between(first, second) if Use(row.use) in uses)


def obstacles_of(stops: Sequence[Release], uses: Collection[Use]) -> tuple[str, ...]:
    """Return the formats that prevent rolling bounces between stops of a path, as sentences."""
    return tuple(
        f"{row.name}: since {row.changed_in} {row.what}, and no setting keeps the old format"
        f" {row.evidence}"
        for first, second in pairwise(stops)
        for row in changed_formats(first, second, uses)
        if data.pin_that_keeps(row, first, second) is None
    )


def drain_demand(first: Release, second: Release, uses: Collection[Use]) -> tuple[str, ...]:
    """Return what a release demands that cannot read unread records of the other one.

    Upwards they are of the former format; downwards of the present one, where no reset is due.
    """
    is_down = second.order < first.order
    down = (row for row in changed_formats(first, second, uses) if is_down and not row.needs_reset)
    return tuple(
        f"{row.name}: {second.name} cannot read a record that {first.name} has written and no"
        " member has read"
        for row in down
    ) + tuple(
        f"{row.name}: {second.name} ends at a record of the former format that no member has read;"
        f" better take {row.reads_former_since} or later, which reads it"
        for row in _unreadable(first, second, uses)
        if not row.former_is_restored
    )


def _unreadable(first: Release, second: Release, uses: Collection[Use]) -> Iterator[data.FormatRow]:
    """Yield the formats of the earlier release that the later one cannot read; upwards only."""
    for row in changed_formats(first, second, uses):
        if first.order < second.order < find_release(row.reads_former_since).order:
            yield row


def reset_demand(first: Release, second: Release, uses: Collection[Use]) -> tuple[str, ...]:
    """Return what a group does whose changelogs the next release cannot read; often nothing."""
    is_down = second.order < first.order
    down = [row for row in changed_formats(first, second, uses) if is_down and row.needs_reset]
    up = [row for row in _unreadable(first, second, uses) if row.former_is_restored]
    return (
        *(f"better take {row.reads_former_since} or later, which needs no reset" for row in up),
        *(
            line
            for row in (*down, *up)
            for line in (
                (
                    f"{row.name}: internal topics and changelogs hold records that {second.name}"
                    " cannot read; reset the application while no member runs, and delete all state"
                    " directories"
                ),
                (
                    f"{second.name} then reads its input again and writes its results again, as far"
                    " as the input topics still have their records"
                ),
            )
        ),
    )
