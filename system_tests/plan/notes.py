"""Warnings of a plan: traps between releases, known issues, risks of JVM leaders."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from probing import EARLIEST_NATIVE_VERSION, HELD_BACK, LeaderModel, Release, upgrade_path
from probing import releases as data
from probing.features import ASSIGNMENT_PROTOCOL
from probing.upgrades import setting_notes
from system_tests.plan.changes import Brokers
from system_tests.plan.model import Way
from system_tests.sim import KNOWN, Shape
from system_tests.sim.world import behaviour_of

NO_GO: Final = "!! "
"""Prefix of a warning about a trap."""
_FIRST_WITH_STANDBY_HOSTS: Final = 6
_FIRST_WITHOUT_PIN: Final = (2, 4, 0)  # a group of an earlier release has been pinned
# Issue -> the feature that an application must use to be affected.
_ISSUE_USES: Final = {"KAFKA-9525": "static", "KAFKA-9568": "static"}


class Trap(StrEnum):
    """What a path can run into that makes it a no go; the value says so in words."""

    BROKERS = "members cannot use the brokers"
    FATAL = "members can die"
    STUCK = "the group does not reach the new version"
    REPEATED = "two threads process the same task"


class Note(NamedTuple):
    """A warning, and the trap that it is about; often none.

    Attributes:
        text: the warning.
        trap: what the path runs into; None: nothing.
        way_out: how to avoid the trap, as an imperative; empty: only by stopping all members.
    """

    text: str
    trap: Trap | None = None
    way_out: str = ""

    @property
    def stops_all(self) -> bool:
        """Whether only a step that stops all members avoids the trap."""
        return self.trap is not None and not self.way_out


def notes_of(
    way: Way,
    uses: frozenset[str],
    *,
    threads: int = 1,
    subtopologies: int = 0,
    brokers: Brokers | None = None,
) -> tuple[Note, ...]:
    """Return the warnings of a way, traps first: settings, and where releases are mixed, the rest.

    Args:
        way: its stops, and whether members of two of them are ever in the group together.
        uses: features that the application uses.
        threads: stream threads in each process.
        subtopologies: of the application; 0: their number is not known.
        brokers: those of the group; None: their release is not known.
    """
    notes: list[Note] = []
    if brokers is not None and brokers.problem:
        sentence = f"brokers of {brokers.release.name} {brokers.problem}"
        notes.append(Note(sentence, Trap.BROKERS, brokers.way_out))
    for old, new in pairwise(way.stops):
        texts = setting_notes(old, new)
        texts += _series_notes(new) if way.stops[0].order < _FIRST_WITHOUT_PIN else []
        notes += map(Note, texts)
        mixed = _mixed_notes(old, new, uses, threads) if way.rolling else []
        notes += [n for n in mixed if n.trap is not Trap.FATAL or subtopologies != 1]
    marked = (note if note.trap is None else _marked(note) for note in notes)
    return tuple(sorted(dict.fromkeys(marked), key=lambda note: note.trap is None))


def _marked(note: Note) -> Note:
    """Return the note of a trap with its sign, and with the way out if it has one."""
    return note._replace(text="; ".join(filter(None, (NO_GO + note.text, note.way_out))))


def _mixed_notes(old: Release, new: Release, uses: frozenset[str], threads: int) -> list[Note]:
    """Return the warnings about a group with members of both releases."""
    lower, higher = sorted((old, new), key=lambda release: release.order)
    is_down = new is lower
    texts = _former_task_notes(lower, higher, is_down=is_down)
    texts += _query_notes(old, new) if "iq" in uses else []
    return [
        *map(Note, texts),
        *_probing_answer_notes(lower, higher, is_down=is_down),
        *_thread_notes(old, new, threads),
        *(_static_notes(old, new) if "static" in uses else ()),
    ]


def traps_of(notes: Iterable[Note]) -> dict[Trap, str]:
    """Return each trap of some notes, with the first of its warnings."""
    found: dict[Trap, str] = {}
    for note in notes:
        if note.trap is not None:
            found.setdefault(note.trap, note.text)
    return found


def going_back(text: str) -> str:
    """Return the warning about a trap as that of a way back."""
    return f"{NO_GO}going back: {text.removeprefix(NO_GO)}"


def _series_notes(new: Release) -> list[str]:
    """Return warnings about `upgrade.from` values that the new release rejects or ignores."""
    notes = []
    refused = [row.value for row in new.upgrade_from_rows if row.standing == "refused"]
    if refused:
        notes.append(
            f"{new.name} parses upgrade.from={refused[0]} to {refused[-1]} and refuses to start"
            f" with it: {data.WITHOUT_EAGER}"
        )
    elif new.order >= (4, 2, 0) and not new.is_native:
        notes.append(f"{new.name} rejects upgrade.from values up to {data.LAST_EAGER_SERIES}")
    return notes


def _joins(new: Release, *, is_down: bool) -> str:
    """Return when members of a newer release join a group with older ones, as a clause.

    On the way down such a member is in the group already, and joins again after a crash.
    """
    return f"while a member of {new.name} joins{' again after a crash or restart' * is_down}"


def _former_task_notes(old: Release, new: Release, *, is_down: bool) -> list[str]:
    """Return the warning about an old leader that assigns stale tasks while newer members join."""
    keeps = (LeaderModel.EMPTY_AND_OWN, LeaderModel.EMPTY_AND_LOWEST)
    if old.leader_model not in keeps or new.latest_version <= old.latest_version:
        return []
    sentence = (
        f"{_joins(new, is_down=is_down)}, a leader of {old.name} returns each member its"
        " previous tasks: if a member missed the previous assignment, two members run the same task"
        " until the next rebalance, which the new member requests at once; wait until the group is"
        " stable before you bounce the next member, also after a crash"
    )
    return [sentence]


def _way_round(old: Release) -> str:
    """Return by which release no newer member joins under a leader of `old`; empty: by none."""
    fixed = [
        release.name
        for release in data.RELEASES
        if release.leader_model is LeaderModel.EMPTY_AND_LOWEST
        and release.latest_version == old.latest_version
        and release.order > old.order
    ]
    if fixed:
        return f"bounce to {fixed[-1]} first, which also writes version {old.latest_version}"
    return ""


def _probing_answer_notes(old: Release, new: Release, *, is_down: bool) -> list[Note]:
    """Return the warning about old members that crash if one leads while a newer member joins."""
    broken = LeaderModel.EMPTY_AND_OWN
    if old.leader_model is not broken or new.latest_version <= old.latest_version:
        return []
    sentence = (
        f"{_joins(new, is_down=is_down)}, a leader of {old.name} assigns partitions that"
        " do not match the tasks:"
        f" with more than one subtopology, members of {old.name} crash with a NullPointerException"
        " (fixed in 2.2.2 and 2.3.1)"
    )
    return [Note(sentence, Trap.FATAL, _way_round(old))]


def _thread_notes(old: Release, new: Release, threads: int) -> list[Note]:
    """Return the warning about processes with several threads under leaders before 2.3.1."""
    shape = Shape(
        old=old, new=new, threads=threads, static=False, faults=frozenset(), offline=False
    )
    return [
        Note(
            f"{_joins(new, is_down=False)}, {row.why}: {threads} threads process the same records"
            " until the next rebalance (fixed in 2.2.2 and 2.3.1)",
            Trap.REPEATED,
            _way_round(old),
        )
        for row in KNOWN
        if row.issue == "repeated tasks" and row.matches(shape)
    ]


def _query_notes(old: Release, new: Release) -> list[str]:
    lowest = min(old.latest_version, new.latest_version)
    highest = max(old.latest_version, new.latest_version)
    if not lowest < _FIRST_WITH_STANDBY_HOSTS <= highest:
        return []
    sentence = (
        f"while members of {old.name} and {new.name} run side by side, the group uses version"
        f" {lowest}, which has no hosts of standby tasks: only active tasks can be queried"
    )
    return [sentence]


def _static_notes(old: Release, new: Release) -> list[Note]:
    session_ms = behaviour_of(new.name, None).session_timeout_ms
    fixed = next(row.fixed_in[0] for row in data.ISSUES if row.id == "KAFKA-9525")
    if new.latest_version <= old.latest_version or "KAFKA-9525" not in new.open_issues:
        return []
    sentence = (
        f"static members of {new.name} cannot request a rebalance (KAFKA-9525): the group stays"
        f" at version {old.latest_version} until a member joins or leaves; a member that is"
        f" down for longer than session.timeout.ms (default {session_ms} ms) comes back without"
        " tasks, and the last remaining member rejoins again and again"
    )
    way_out = f"take {fixed} or later instead, whose static members request rebalances"
    return [Note(sentence, Trap.STUCK, way_out)]


def bug_sentences(stops: Sequence[Release], uses: frozenset[str]) -> tuple[str, ...]:
    """Return a sentence for each known issue that is open in one of the releases.

    Args:
        stops: releases in the order in which the group runs them.
        uses: features that the application uses; issues of other features are left out.
    """
    notes = {}
    for issue in data.ISSUES:
        where = [stop.name for stop in stops if issue.id in stop.open_issues]
        use = _ISSUE_USES.get(issue.id)
        if where and (use is None or use in uses):
            notes[issue.id] = (
                f"{issue.id} in {', '.join(where)}: {issue.summary}"
                f" (fixed in {', '.join(issue.fixed_in)})"
            )
    path = upgrade_path(stops[0], stops[-1])
    own_number = path.reasons[:1] if path.rule == "leader's own number" else ()
    return (*notes.values(), *(own_number if "KAFKA-8649" not in notes else ()))


def window_sentences(old: Release, new: Release) -> tuple[str, ...]:
    """Return when a JVM leader may fail a group that also has native members.

    Empty if both releases are native, or neither is.
    """
    if old.is_native == new.is_native:
        return ()
    kafka, native = (new, old) if old.is_native else (old, new)
    last_pin = data.PIN_BY_LAST_SERIES[-1][0]
    held = HELD_BACK.level_of(ASSIGNMENT_PROTOCOL)
    if kafka.latest_version < 3:  # noqa: PLR2004 the first version that can be probed
        first = (
            f"a. risk: {kafka.name} reads versions 1 and 2 only; the group fails if a member of"
            f" {kafka.name} is leader and a member of {native.name} runs without"
            f" upgrade.from={kafka.series}"
        )
    elif kafka.latest_version < native.start_version:
        first = (
            f"a. risk if a member of {kafka.name} has upgrade.from up to {last_pin}: the group"
            f" fails if a member of {kafka.name} is leader and a member of {native.name} is not"
            " pinned; the risk ends with the first rebalance under a native leader; remove such"
            " pins before the bounce"
        )
    else:
        first = (
            f"a. no risk: {kafka.name} reads every version that a member of {native.name} writes"
            f" in the same group, {native.start_version} at most"
        )
    second = (
        f"b. no risk while the finalized level is held at {held}: once members"
        f" write version {EARLIEST_NATIVE_VERSION}, the group fails if a JVM member that starts"
        f" with upgrade.from up to {last_pin} is leader of its first rebalance; one completed"
        " rebalance under any leader ends the risk"
    )
    return first, second
