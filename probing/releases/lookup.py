"""The release table: every released Kafka Streams patch and the native releases, found by name.

There are three native releases: ``native`` is this program; ``next`` and ``incompatible`` emulate
later releases, so that tests can upgrade to them.

The table is keyed by patch, because a metadata version can change in a patch (2.6.0 writes 7, 2.6.1
writes 8), and a fix can be missing on a later branch. ``releases.toml`` holds the data.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final, TypeVar

from probing.releases import rows as data
from probing.releases.behaviour import LeaderModel, MemberModel
from probing.versions import EARLIEST_NATIVE_VERSION, START_VERSION

_Value = TypeVar("_Value")

NATIVE: Final = "native"
_NATIVE_ORDER: Final = (10**6,)


class ReleaseError(ValueError):
    """An unknown release or ``upgrade.from``; the message names the known ones."""


class Standing(StrEnum):
    """What a release does with an ``upgrade.from`` value."""

    ACCEPTED = "accepted"
    CRASHES = "crashes"
    REFUSED = "refused"


class RebalanceProtocol(StrEnum):
    """How partitions move: all are revoked first, or only those that move (KIP-429)."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeFrom:
    """One value of ``upgrade.from`` in one release, and its effect.

    Attributes:
        value: as written in the configuration.
        standing: accepted, accepted but fatal (3.5.0 and "3.4"), or refused at start (4.0, 4.1).
        pinned_version: the version that the member writes; None means `Release.start_version`.
        rebalance_protocol: the protocol that the member offers; for native members, the most that
            it may offer.
        formats: other formats that the value keeps at their old layout.
        why: what happens, for values that are not accepted.
    """

    value: str
    standing: Standing
    pinned_version: int | None
    rebalance_protocol: RebalanceProtocol
    formats: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release: the versions that it reads and writes, and how it behaves.

    Attributes:
        name: "2.3.1", "0.10.2.2", or "native", "next", "incompatible".
        series: "2.3", "0.10.2", or the name of a native release.
        order: sort key; native releases sort last.
        known_versions: Kafka versions that it reads and writes, ascending; may have holes.
        latest_version: the greatest of them.
        leader_model, member_model: how it behaves in a group.
        rebalance_protocol: what it offers without ``upgrade.from``; native: what is configured.
        upgrade_from_rows: every value that it knows, oldest first; open_issues: ids of issues.
        native_versions: native versions that it writes, ascending; Kafka's releases have none.
    """

    name: str
    series: str
    order: tuple[int, ...]
    known_versions: tuple[int, ...]
    latest_version: int
    leader_model: LeaderModel
    member_model: MemberModel
    rebalance_protocol: RebalanceProtocol
    upgrade_from_rows: tuple[UpgradeFrom, ...]
    open_issues: tuple[str, ...]
    native_versions: tuple[int, ...] = ()

    @property
    def is_native(self) -> bool:
        """Tell whether this is a native release and not one of Kafka's."""
        return bool(self.native_versions)

    @property
    def start_version(self) -> int:
        """Return the version that a member writes at start without a pin."""
        return START_VERSION if self.is_native else self.latest_version

    @property
    def readable_versions(self) -> tuple[int, ...]:
        """Return every version that it reads and writes: Kafka versions, then native ones."""
        return (*self.known_versions, *self.native_versions)

    @property
    def latest_native_version(self) -> int | None:
        """Return its greatest native version, None for Kafka's releases."""
        return max(self.native_versions, default=None)

    def reads(self, version: int) -> bool:
        """Tell whether it reads the body of a subscription or answer in ``version``.

        A native body names the first version that can read it, so a later one may be readable.
        """
        if version < EARLIEST_NATIVE_VERSION or not self.native_versions:
            return version in self.known_versions
        since = {row.version: row.readable_since for row in data.NATIVE_VERSIONS}
        return version in since and max(self.native_versions) >= since[version]

    @property
    def upgrade_from(self) -> Mapping[str, UpgradeFrom]:
        """Return the accepted values, each with its effect."""
        return {
            row.value: row for row in self.upgrade_from_rows if row.standing is Standing.ACCEPTED
        }

    def started_with(self, upgrade_from: str | None) -> UpgradeFrom | None:
        """Return the effect of ``upgrade_from`` in this release, None if it is not set.

        Raises:
            ReleaseError: the value is unknown, refused or fatal; the message names the accepted
                ones.
        """
        if upgrade_from is None:
            return None
        rows = {row.value: row for row in self.upgrade_from_rows}
        accepted = ", ".join(self.upgrade_from) or "none: this release has no such setting"
        row = rows.get(upgrade_from)
        if row is None:
            raise ReleaseError(
                f"upgrade.from={upgrade_from!r} is unknown to release {self.name};"
                f" set one of the accepted values ({accepted}) or leave it out"
            )
        if row.standing is not Standing.ACCEPTED:
            raise ReleaseError(
                f"upgrade.from={upgrade_from!r} cannot be used with release {self.name}: {row.why};"
                f" set one of the accepted values ({accepted}) or leave it out"
            )
        return row

    def pinned_version(self, upgrade_from: str | None) -> int:
        """Return the version that a member writes at start.

        Args:
            upgrade_from: the setting's value, None when it is not set.

        Raises:
            ReleaseError: see ``started_with``.
        """
        row = self.started_with(upgrade_from)
        return (row and row.pinned_version) or self.start_version


def parse_order(text: str) -> tuple[int, ...] | None:
    """Return the numbers of ``text`` ("2.3.1" -> (2, 3, 1)), None if it is not such a text."""
    parts = text.split(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= 6 for part in parts):  # noqa: PLR2004 six digits are plenty
        return None
    return tuple(int(part) for part in parts)


@cache  # twenty thousand calls for a hundred names while the table is made
def _order(name: str) -> tuple[int, ...]:
    """Return the sort key of a patch or series."""
    return tuple(int(part) for part in name.split("."))


def _at(rows: Iterable[tuple[str, str | None, _Value]], *, name: str, series: str) -> _Value:
    """Return the value of the last row that holds for the patch ``name`` of ``series``."""
    return [
        value
        for since, only_series, value in rows
        if _order(since) <= _order(name) and only_series in (None, series)
    ][-1]


def _is_open(issue: data.IssueRow, *, name: str, series: str) -> bool:
    """Tell whether a release has the issue: it exists and is not fixed yet."""
    order = _order(name)
    fixed_on_branch = any(
        fix == series or fix.startswith(f"{series}.")
        for fix in issue.fixed_in
        if _order(fix) <= order
    )
    fixed_for_good = order >= max(_order(fix) for fix in issue.fixed_in)
    return _order(issue.since) <= order and not fixed_on_branch and not fixed_for_good


_SERIES: Final = tuple(data.PATCHES_BY_SERIES)


def _protocol(*, is_eager: bool) -> RebalanceProtocol:
    return RebalanceProtocol.EAGER if is_eager else RebalanceProtocol.COOPERATIVE


def _accepted(value: str) -> UpgradeFrom:
    """Return the effect of a value in a release that accepts it and has both protocols."""
    order = _order(value)
    pins = [pin for last, pin in data.PIN_BY_LAST_SERIES if order <= _order(last)]
    return UpgradeFrom(
        value=value,
        standing=Standing.ACCEPTED,
        pinned_version=pins[0] if pins else None,
        rebalance_protocol=_protocol(is_eager=order <= _order(data.LAST_EAGER_SERIES)),
    )


def _upgrade_from_row(value: str, *, name: str) -> UpgradeFrom:
    order, row = _order(name), _accepted(value)
    standing, why = row.standing, row.why
    if row.rebalance_protocol is RebalanceProtocol.EAGER and order >= _order(
        data.FIRST_PATCH_WITHOUT_EAGER
    ):
        bridges = ", ".join(data.BRIDGE_SERIES)
        standing = Standing.REFUSED
        why = f"{data.WITHOUT_EAGER}; upgrade through one of {bridges} first"
    else:
        for first, last, bad_value, crash in data.CRASHING_VALUES:
            if bad_value == value and _order(first) <= order <= _order(last):
                standing, why = Standing.CRASHES, crash
    return replace(
        row,
        standing=standing,
        rebalance_protocol=RebalanceProtocol.EAGER
        if order < _order(data.FIRST_COOPERATIVE_PATCH)
        else row.rebalance_protocol,
        formats=tuple(
            format_name
            for format_name, last_old_series, honoured_since in data.KEPT_FORMATS
            if _order(value) <= _order(last_old_series) and order >= _order(honoured_since)
        ),
        why=why,
    )


def _kafka_release(name: str, series: str) -> Release:
    order = _order(name)
    latest = [v for since, v, _ in data.LATEST_VERSION_SINCE if _order(since) <= order][-1]
    span = _at(data.UPGRADE_FROM_SINCE, name=name, series=series)
    values = _SERIES[_SERIES.index(span[0]) : _SERIES.index(span[1]) + 1] if span else ()
    return Release(
        name=name,
        series=series,
        order=order,
        known_versions=tuple(v for _, v, _ in data.LATEST_VERSION_SINCE if v <= latest),
        latest_version=latest,
        leader_model=_at(data.LEADER_MODEL_SINCE, name=name, series=series),
        member_model=_at(data.MEMBER_MODEL_SINCE, name=name, series=series),
        rebalance_protocol=_protocol(is_eager=order < _order(data.FIRST_COOPERATIVE_PATCH)),
        upgrade_from_rows=tuple(_upgrade_from_row(value, name=name) for value in values),
        open_issues=tuple(
            issue.id for issue in data.ISSUES if _is_open(issue, name=name, series=series)
        ),
    )


def _native_release(number: int, row: data.NativeReleaseRow) -> Release:
    """Return a native release: it knows every Kafka version and accepts every pin."""
    known = tuple(version for _, version, _ in data.LATEST_VERSION_SINCE)
    return Release(
        name=row.name,
        series=row.name,
        order=(*_NATIVE_ORDER, number),
        known_versions=known,
        latest_version=max(known),
        leader_model=LeaderModel.NATIVE,
        member_model=MemberModel.NATIVE,
        rebalance_protocol=RebalanceProtocol.EAGER,
        upgrade_from_rows=tuple(map(_accepted, _SERIES)),
        open_issues=(),
        native_versions=row.native_versions,
    )


RELEASES: Final[tuple[Release, ...]] = (
    *(
        _kafka_release(f"{series}.{patch}", series)
        for series, patches in data.PATCHES_BY_SERIES.items()
        for patch in patches
    ),
    *(_native_release(number, row) for number, row in enumerate(data.NATIVE_RELEASES)),
)
"""Every release, oldest first, native releases last."""

NEWEST_KAFKA: Final = [release.name for release in RELEASES if not release.is_native][-1]
"""Name of Kafka's newest release in the table."""
