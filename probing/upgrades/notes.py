"""Notes of an upgrade path: other formats, useless or harmful settings, known issues, rollback.

The number of bounces depends on versions and rebalance protocols only. Foreign-key joins, KTable
aggregations and state directories have formats of their own, which ``notes_for`` explains.
"""

from probing.releases import (
    ISSUES,
    PIN_BY_LAST_SERIES,
    RebalanceProtocol,
    Release,
    Standing,
    parse_order,
)
from probing.upgrades.formats import FORMATS, ONE_WAY_FORMATS, FormatRow, OneWayFormat
from probing.versions import (
    EARLIEST_NATIVE_VERSION,
    EARLIEST_PROBEABLE_VERSION,
    HELD_BACK_VERSION,
)


def notes_for(old: Release, new: Release) -> tuple[str, ...]:
    """Return the notes for the path from ``old`` to ``new``, in a fixed order; often none."""
    return (
        *_format_notes(old, new),
        *setting_notes(old, new),
        *_window_notes(old, new),
        *_rollback_notes(old, new),
        *_issue_notes(old, new),
    )


def one_way_formats_between(lower: Release, higher: Release) -> tuple[OneWayFormat, ...]:
    """Return what `higher` writes on disk and `lower` cannot read; often nothing.

    Empty if `lower` is not the earlier of the two, and if `higher` is native: native members have
    no state stores of Kafka's.
    """
    if higher.is_native:
        return ()
    return tuple(row for row in ONE_WAY_FORMATS if lower.order < _order(row.since) <= higher.order)


def formats_between(first: Release, second: Release) -> tuple[FormatRow, ...]:
    """Return the formats in internal topics that change between two releases; native: none.

    Without those of features that the earlier one does not have.
    """
    lower, higher = sorted((first, second), key=lambda release: release.order)
    if higher.is_native:
        return ()
    return tuple(
        row
        for row in FORMATS
        if _order(row.exists_since) <= lower.order < _order(row.changed_in) <= higher.order
    )


def pin_that_keeps(row: FormatRow, first: Release, second: Release) -> str | None:
    """Return the ``upgrade.from`` with which the later of two releases keeps an old format.

    It is the series of the earlier release, or the latest one below it that has the same effect if
    that value is not accepted: 3.3 in 3.5.0 and 3.5.1, instead of 3.4. None: no value does.
    """
    lower, higher = sorted((first, second), key=lambda release: release.order)
    keep = [value for value, effect in higher.upgrade_from.items() if row.name in effect.formats]
    if lower.series in keep:
        return lower.series
    below = [value for value in keep if _order(value) < _order(lower.series)]
    is_free = bool(below) and higher.upgrade_from[below[-1]].pinned_version is None
    return below[-1] if is_free and lower.rebalance_protocol == higher.rebalance_protocol else None


def former_answer_is_unreadable(old: Release, new: Release) -> bool:
    """Return whether a static member of `old` is given an answer that it may not read as `new`.

    Within its session it is given its former assignment (`FORMER_ANSWER`).
    """
    return new.latest_version < old.latest_version or (
        set(old.native_versions) > set(new.native_versions)
    )


def _order(name: str) -> tuple[int, ...]:
    return parse_order(name) or ()


def _format_notes(old: Release, new: Release) -> list[str]:
    """Return notes on features that need a pin, or all members stopped, as a format changes."""
    notes = []
    for row in formats_between(old, new):
        pin = pin_that_keeps(row, old, new)
        if pin is not None:
            how = f"needs two bounces, the first with upgrade.from={pin}"
        elif row.last_old_series:
            continue  # the value is refused: there is no direct path
        else:
            how = f"cannot be bounced between {old.name} and {new.name}; stop all members"
        notes.append(f"{row.name}: an application that uses them {how}")
    return notes


def setting_notes(old: Release, new: Release) -> list[str]:
    """Return the notes on settings to leave alone, and on members of both rebalance protocols."""
    return [*_pin_notes(old, new), *_protocol_notes(old, new)]


def _pin_notes(old: Release, new: Release) -> list[str]:
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
            f" upgrade.from up to {PIN_BY_LAST_SERIES[-1][0]} ends the group if one of"
            f" {kafka.name} leads, until a native leader has held a rebalance"
        )
    if old.is_native:
        notes.append(
            f"a member of {kafka.name} with an upgrade.from up to {PIN_BY_LAST_SERIES[-1][0]}"
            f" that leads its first rebalance ends a group at version {EARLIEST_NATIVE_VERSION} or"
            f" above; hold the finalized level at {HELD_BACK_VERSION} before it starts"
        )
    return notes


def _rollback_notes(old: Release, new: Release) -> list[str]:
    """Return notes on state that the later release wrote and the earlier one cannot read."""
    return [
        f"since {row.since} {row.what}: members of {new.name} cannot read them; delete the state"
        " directories before you start them"
        for row in one_way_formats_between(new, old)
    ]


def _issue_notes(old: Release, new: Release) -> list[str]:
    """Return the known issues that are open in the new release."""
    if old.name == new.name:
        return []
    return [
        f"{issue.id} is open in {new.name}: {issue.summary} (fixed in {', '.join(issue.fixed_in)})"
        for issue in ISSUES
        if issue.id in new.open_issues
    ]
