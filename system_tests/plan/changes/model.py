"""A change of a release, and which changes concern a path.

A row concerns a path if the group comes to run a release that has the change, from one that does
not; a defect also if it runs with it before and after an upgrade. Another target than a release (a
new rebalance protocol) declares rows of the same form and selects them itself.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

from probing import RELEASES, Release, find_release
from system_tests.plan.uses import Use


class Subject(StrEnum):
    """What a change is about; the value is its label."""

    JAVA = "Java"
    BROKERS = "brokers"
    EXACTLY_ONCE = "exactly-once"
    REMOVED = "removed"
    DEFAULT = "default"
    BEHAVIOUR = "behaviour"
    STORES = "stores and topics"
    DEFECT = "defect"


class When(StrEnum):
    """When an operator deals with a change; the value is the title of its rows."""

    BEFORE = "Before you start"
    STEP = "In the steps"
    AFTER = "Afterwards"


class Work(StrEnum):
    """What a step of a plan does about a change; the value completes "step N"."""

    SWITCH = "switches to it"
    STOP = "stops all members"
    DRAIN = "has these topics consumed first"


class Of(StrEnum):
    """Whose release a change is a fact of."""

    MEMBERS = "members"
    BROKERS = "brokers"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseChange:
    """One change, as a row of data.

    Attributes:
        since: the first release with it; until: the first later release without it, or empty.
        subject: what it is about.
        when: whether it is dealt with before the upgrade, in a step of the plan, or afterwards.
        what: what changes, as a sentence without a full stop; empty: nothing that a path to it has
            to say, as of a setting that is new.
        action: what to do, as an imperative; empty if nothing. That of a defect names no release:
            those without it follow from the ranges, and from the path.
        work: what a step of a plan does about it, in either direction; None: no step.
        source: KIP, issue, or the page of Kafka's documentation that says it.
        shown: the experiment of this project that showed it; often empty.
        uses: features of the application that are concerned; empty: every application.
        unless: features with which the change has no effect.
        at_switch: it is due at the step that switches processing.guarantee, if the path has one.
        from_below: it concerns only paths that start below this release; empty: all.
        also: other ranges of releases with the change, as (first, first later one without it).
        off_by_default: only a setting turns it on.
        needs: the first brokers that members with it can use; empty: it needs none.
        refused_by: the first brokers that refuse members without it; empty: none do.
        with_brokers: the first brokers with which it has an effect, and the first later ones with
            which it has none; empty: below `needs`, or with all.
        no_return: what ends the way back besides steps, as a sentence; empty: nothing does.
        back: what changes when the group returns to a release without it; empty: nothing is said.
        back_action: what to do about `back`.
        back_when: when it is dealt with.
        of: whose release it is a fact of; `changes_between` takes it for the one of its stops.
    """

    since: str
    until: str = ""
    subject: Subject
    when: When = When.BEFORE
    what: str = ""
    action: str = ""
    work: Work | None = None
    source: str
    shown: str = ""
    uses: tuple[Use, ...] = ()
    unless: tuple[Use, ...] = ()
    at_switch: bool = False
    off_by_default: bool = False
    from_below: str = ""
    needs: str = ""
    refused_by: str = ""
    with_brokers: tuple[str, ...] = ()
    no_return: str = ""
    back: str = ""
    back_action: str = ""
    back_when: When = When.AFTER
    also: tuple[tuple[str, str], ...] = ()
    of: Of = Of.MEMBERS

    @property
    def ranges(self) -> tuple[tuple[str, str], ...]:
        """Every range of releases with the change, as in `also`, in order of release."""
        return tuple(
            sorted(
                ((self.since, self.until), *self.also), key=lambda row: find_release(row[0]).order
            )
        )

    def is_in(self, release: Release) -> bool:
        """Whether a release has the change."""
        return bool(self.begun(release))

    def begun(self, release: Release) -> str:
        """Return the release that began the range in which a release is; empty: it is in none."""
        found = (
            since
            for since, until in self.ranges
            if find_release(since).order <= release.order
            and (not until or release.order < find_release(until).order)
        )
        return "" if release.is_native else next(found, "")

    def concerns(self, uses: Collection[Use]) -> bool:
        """Whether it concerns an application with some features."""
        is_used = not self.uses or not set(self.uses).isdisjoint(uses)
        return is_used and set(self.unless).isdisjoint(uses)

    def has_effect(self, brokers: Release | None, *, is_left: bool) -> bool:
        """Whether it matters with brokers of a release, and on a way back; None: not known."""
        since, until = self.with_brokers or ("", self.needs)
        if is_left and self.refused_by:
            since = self.refused_by
        return brokers is None or (
            (not since or find_release(since).order <= brokers.order)
            and (not until or brokers.order < find_release(until).order)
        )

    def with_work(self, step: str, action: str) -> str:
        """Return what a step does about the change, if one does, and an action, as a sentence."""
        return "; ".join(filter(None, (f"{step} {self.work}" if self.work else "", action)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """A change that concerns a path.

    Attributes:
        release: the first release of the path that has the change; on the way back, the first one
            that does not; of a change that is due at a switch, the release that members run then.
        changed: the release of Kafka that made the change, as "since 3.0.0", or on the way back as
            "before 3.0.0"; empty if it is `release`, or due at a switch.
        subject, when, what, action, source: as in `ReleaseChange`.
        no_return: as in `ReleaseChange`; empty on the way back.
    """

    release: str
    changed: str = ""
    subject: Subject
    when: When
    what: str
    action: str
    source: str
    no_return: str = ""

    @property
    def label(self) -> str:
        """The release of the path, and the one that made the change if it is another."""
        return f"{self.release} ({self.changed})" if self.changed else self.release

    def __str__(self) -> str:
        """Return the change as one line."""
        action = f"; {self.action}" if self.action else ""
        return f"{self.subject}, {self.label}: {self.what}{action} [{self.source}]"


def changes_when(changes: Iterable[PathChange], when: When) -> list[str]:
    """Return the changes that are dealt with at one time, as lines."""
    return [str(change) for change in changes if change.when is when]


def changes_between(
    stops: Sequence[Release],
    uses: Iterable[Use],
    rows: Iterable[ReleaseChange],
    *,
    brokers: Release | None = None,
    switched_on: str = "",
    done_in: Mapping[Work, int] | None = None,
) -> tuple[PathChange, ...]:
    """Return the changes that concern a path, by subject and then in the order of the rows.

    Args:
        stops: releases in the order in which the group runs them, the first included.
        uses: features that the application uses.
        rows: the changes to select from.
        brokers: their release; None: not known, so that no row is left out.
        switched_on: release on which the path switches processing.guarantee; empty: nowhere.
        done_in: the first step that does a work -> its number, for the actions.
    """
    known = frozenset(uses)
    found = [
        replace(change, release=switched_on, changed="")
        if row.at_switch and switched_on
        else change
        for row in rows
        if row.concerns(known) and row.has_effect(brokers, is_left=row.is_in(stops[0]))
        for change in _on_path(row, stops, done_in or {})
    ]
    return tuple(sorted(found, key=lambda change: list(Subject).index(change.subject)))


def _remedy(row: ReleaseChange, reached: Release, stops: Sequence[Release]) -> str:
    """Return what to do about a defect of a release that a path reaches, as an imperative.

    Releases without it that fit the path: upwards the later ones, downwards later patches of the
    same series; then the action of the row, which holds for every path.
    """
    first, last = stops[0], stops[-1]
    is_upgrade = first.order < last.order
    if is_upgrade and not row.is_in(last):
        return "; ".join(filter(None, (f"{last.name}, where the path ends, lacks it", row.action)))
    later = [
        release
        for release in RELEASES
        if release.order > reached.order and not release.is_native
        if is_upgrade or (release.series == reached.series and release.order < first.order)
    ]
    without = [
        [release.name for release in group]
        for is_open, group in groupby(later, row.is_in)
        if not is_open
    ]
    if without:
        named = [f"{names[0]} to {names[-1]}" if names[1:] else names[0] for names in without]
        if is_upgrade and without[-1][-1] == later[-1].name:
            named[-1] = f"{without[-1][0]} or later"
        take = f"take {', or '.join(named)}"
        return f"{take}, or {row.action}" if row.action else take
    if row.action or is_upgrade:
        return row.action
    return f"no later patch of {reached.series} below {first.name} lacks it"


def _on_path(
    row: ReleaseChange, stops: Sequence[Release], done_in: Mapping[Work, int]
) -> list[PathChange]:
    first, *later = stops
    if any(stop.is_native for stop in stops):
        return []  # members of this project run neither Java nor Kafka's settings
    is_upgrade = not later or first.order < later[-1].order
    is_known = row.is_in(first)
    if row.from_below and first.order >= find_release(row.from_below).order:
        return []
    if not is_known and (is_upgrade or row.subject is Subject.DEFECT):
        reached = [stop for stop in later if row.is_in(stop)]
        what, action = row.what, row.action
    elif is_known and is_upgrade and row.subject is Subject.DEFECT:
        reached = [stop for stop in later[-1:] if row.is_in(stop)]
        what, action = f"as in {first.name}, {row.what}", row.action
    elif is_known and not is_upgrade:
        reached = [stop for stop in later if not row.is_in(stop)]
        what, action = row.back, row.back_action
    else:
        return []
    if not reached or not what:
        return []
    if row.subject is Subject.DEFECT:
        action = _remedy(row, reached[0], stops)
    if row.work is not None and row.work in done_in:
        action = row.with_work(f"step {done_in[row.work]}", action)
    release = reached[0].name
    is_left = is_known and not is_upgrade
    made = f"before {row.begun(first)}" if is_left else f"since {row.begun(reached[0])}"
    return [
        PathChange(
            release=release,
            changed="" if made == f"since {release}" else made,
            subject=row.subject,
            when=row.back_when if what is row.back else row.when,
            what=what,
            action=action,
            source=row.source,
            no_return="" if is_left else row.no_return,
        )
    ]
