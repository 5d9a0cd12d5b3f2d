"""Notes of an upgrade path: other formats, useless or harmful settings, known issues, rollback.

The number of bounces depends on versions and rebalance protocols only. Foreign-key joins, KTable
aggregations and state directories have formats of their own, which ``notes_for`` explains.
"""

from probing.releases import rows as data
from probing.releases.lookup import RebalanceProtocol, Release, Standing, parse_order
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    HELD_BACK_VERSION,
)


def notes_for(old: Release, new: Release) -> tuple[str, ...]:
    """Return the notes for the path from ``old`` to ``new``, in a fixed order; often none."""
    return (
        *_format_notes(old, new),
        *_setting_notes(old, new),
        *_protocol_notes(old, new),
        *_window_notes(old, new),
        *_rollback_notes(old, new),
        *_issue_notes(old, new),
    )


def one_way_formats_between(lower: Release, higher: Release) -> tuple[data.OneWayFormat, ...]:
    """Return what `higher` writes and `lower` cannot read; often nothing.

    Empty if `lower` is not the earlier of the two, and if `higher` is native: native members have
    no state stores of Kafka's.
    """
    if higher.is_native:
        return ()
    return tuple(
        row for row in data.ONE_WAY_FORMATS if lower.order < _order(row.since) <= higher.order
    )


def _order(name: str) -> tuple[int, ...]:
    return parse_order(name) or ()


def _format_notes(old: Release, new: Release) -> list[str]:
    """Return notes on features that need two bounces, because their format changes."""
    if new.is_native or old.is_native:
        return []
    rows = {row.value: row for row in new.upgrade_from_rows}
    value = rows.get(old.series)
    notes = []
    for row in data.FORMATS:
        changed = old.order < _order(row.changed_in) <= new.order
        if not changed or value is None or value.standing is Standing.REFUSED:
            continue  # the value is unknown or refused: there is no direct path
        if value.standing is Standing.CRASHES:
            notes.append(
                f"{row.name}: two bounces would be needed, but upgrade.from={old.series} is"
                f" {value.why} in {new.name}; use a later patch of {new.series}"
            )
        elif row.name in value.formats:
            notes.append(
                f"{row.name}: an application that uses them needs two bounces, the first with"
                f" upgrade.from={old.series}"
            )
        else:
            notes.append(
                f"{row.name}: an application that uses them cannot be bounced to {new.name};"
                " stop all members, or use a later release"
            )
    return notes


def _setting_notes(old: Release, new: Release) -> list[str]:
    """Return a note if upgrade.from=<old series> is unknown or fatal, and not needed."""
    if new.is_native or old.is_native or not new.upgrade_from_rows or old.order >= new.order:
        return []
    rows = {row.value: row for row in new.upgrade_from_rows}
    value = rows.get(old.series)
    newest = max((_order(known) for known in rows), default=())
    if value is not None and value.standing is Standing.CRASHES:
        return [f"do not set upgrade.from={old.series} on {new.name}: it is {value.why}"]
    if value is None and newest < _order(old.series) and old.series != new.series:
        return [f"upgrade.from={old.series} is unknown to {new.name} and not needed; do not set it"]
    return []


def _protocol_notes(old: Release, new: Release) -> list[str]:
    """Return a note if one release is native (eager by default) and the other cooperative."""
    other = old if new.is_native else new
    mixed = old.is_native != new.is_native
    if not mixed or other.rebalance_protocol is RebalanceProtocol.EAGER:
        return []
    note = (
        f"members of {other.name} move partitions cooperatively, native members eagerly by default;"
        " the leader withholds a task until its cooperative owner has revoked it"
    )
    return [note]


def _window_notes(old: Release, new: Release) -> list[str]:
    """Return notes on when a JVM leader ends a group that has native members."""
    if old.is_native == new.is_native:
        return []
    kafka, native = (new, old) if old.is_native else (old, new)
    if kafka.latest_version < EARLIEST_PROBEABLE_VERSION:
        note = (
            f"a member of {native.name} that starts without upgrade.from={kafka.series} ends the"
            f" group as soon as a member of {kafka.name} leads it"
        )
        return [note]
    if not any(row.pinned_version for row in kafka.upgrade_from.values()):
        return []
    notes = []
    if kafka.latest_version < native.start_version:
        notes.append(
            f"a member of {native.name} without a pin beside one of {kafka.name} with an"
            f" upgrade.from up to {data.PIN_BY_LAST_SERIES[-1][0]} ends the group if one of"
            f" {kafka.name} leads, until a native leader has held a rebalance"
        )
    if old.is_native:
        notes.append(
            f"a member of {kafka.name} with an upgrade.from up to {data.PIN_BY_LAST_SERIES[-1][0]}"
            f" that leads its first rebalance ends a group at version {EARLIEST_NATIVE_VERSION} or"
            f" above; hold the finalized level at {HELD_BACK_VERSION} before it starts"
        )
    return notes


def _rollback_notes(old: Release, new: Release) -> list[str]:
    """Return notes on data that the later release wrote and the earlier one cannot read."""
    return [
        f"since {row.since} {row.what}: members of {new.name} cannot read them"
        + ("; delete the state directories before you start them" if row.is_state else "")
        for row in one_way_formats_between(new, old)
    ]


def _issue_notes(old: Release, new: Release) -> list[str]:
    """Return the known issues that are open in the new release."""
    if old.name == new.name:
        return []
    return [
        f"{issue.id} is open in {new.name}: {issue.summary} (fixed in {', '.join(issue.fixed_in)})"
        for issue in data.ISSUES
        if issue.id in new.open_issues
    ]
