"""What a plan says beside its steps: traps on the way, known issues, windows of native members."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from probing import EARLIEST_NATIVE_VERSION, LeaderModel, Release, upgrade_path
from probing import releases as data
from system_tests.sim import KNOWN, Shape
from system_tests.sim.world import behaviour_of

DEADLY: Final = "!! "
"""How a note begins that tells of members that die on the way."""
_FIRST_WITH_ENDPOINTS: Final = 2
_FIRST_WITH_STANDBY_HOSTS: Final = 6
# Issues that only an application with this use can meet.
_ISSUE_USES: Final = {"KAFKA-13769": "fk-join", "KAFKA-9525": "static", "KAFKA-9568": "static"}
_SAID_ELSEWHERE: Final = (" is open in ", " ends the group ", "hold the finalized level")


def notes_of(stops: Sequence[Release], uses: frozenset[str]) -> tuple[str, ...]:
    """Return the traps between the stops: settings, formats, static members, host maps.

    Args:
        stops: releases in the order of the way.
        uses: names of what the application uses.
    """
    notes: list[str] = []
    for old, new in pairwise(stops):
        path = upgrade_path(old, new)
        notes += [
            note
            for note in path.notes
            if not any(words in note for words in _SAID_ELSEWHERE) and _concerns(note, uses)
        ]
        notes += _series_notes(old, new)
        notes += _former_task_notes(old, new)
        notes += _probing_answer_notes(old, new)
        if "iq" in uses:
            notes += _query_notes(old, new)
        if "static" in uses:
            notes += _static_notes(old, new)
    return tuple(dict.fromkeys(notes))


def _concerns(note: str, uses: frozenset[str]) -> bool:
    """Tell whether a note about a format is about one that the application has."""
    words = {"fk-join": "foreign-key join", "ktable": "KTable repartition"}
    about = [use for use, word in words.items() if note.startswith(word)]
    return all(use in uses for use in about)


def _series_notes(old: Release, new: Release) -> list[str]:
    """Say what a later patch or a bridge release does with a setting."""
    notes = []
    refused = [row.value for row in new.upgrade_from_rows if row.standing == "refused"]
    if refused:
        notes.append(
            f"{new.name} parses upgrade.from={refused[0]} to {refused[-1]} and refuses to start"
            f" with it: {data.WITHOUT_EAGER}"
        )
    elif new.order >= (4, 2, 0) and not new.is_native and old.order < (4, 0, 0):
        notes.append(f"{new.name} no longer knows upgrade.from of {data.LAST_EAGER_SERIES} or less")
    return notes


def _former_task_notes(old: Release, new: Release) -> list[str]:
    """Say what a leader of the old release does while the first newer members join."""
    keeps = (LeaderModel.EMPTY_AND_OWN, LeaderModel.EMPTY_AND_LOWEST)
    if old.leader_model not in keeps or new.latest_version <= old.latest_version:
        return []
    said = (
        f"while a member of {new.name} joins, a leader of {old.name} hands everybody's former tasks"
        " back: if a member missed the answer before, two run the same task until the next"
        " rebalance, which the new member asks for at once; so wait after a crash, too, until the"
        " group has settled before the next one is bounced"
    )
    return [said]


def _probing_answer_notes(old: Release, new: Release) -> list[str]:
    """Say that members of the old release die if one of them leads while a newer one joins."""
    broken = LeaderModel.EMPTY_AND_OWN
    if old.leader_model is not broken or new.latest_version <= old.latest_version:
        return []
    fixed = [
        one.name
        for one in data.RELEASES
        if one.leader_model is LeaderModel.EMPTY_AND_LOWEST
        and one.latest_version == old.latest_version
        and one.order > old.order
    ]
    instead = (
        f"bounce to {fixed[-1]} first, which writes version {old.latest_version}, too"
        if fixed
        else f"stop all members and start them as {new.name}, or start again the ones that died"
    )
    said = (
        f"{DEADLY}while a member of {new.name} joins, a leader of {old.name} mixes tasks and"
        " partitions up:"
        f" with more than one subtopology, members of {old.name} die of a NullPointerException"
        f" (fixed in 2.2.2 and 2.3.1); {instead}"
    )
    return [said]


def _query_notes(old: Release, new: Release) -> list[str]:
    lowest = min(old.latest_version, new.latest_version)
    highest = max(old.latest_version, new.latest_version)
    rows = (
        (_FIRST_WITH_ENDPOINTS, "no host map at all: interactive queries cannot be routed"),
        (_FIRST_WITH_STANDBY_HOSTS, "no hosts of standby tasks: only actives can be queried"),
    )
    return [
        f"while {old.name} and {new.name} are mixed the group writes version {lowest}, which has"
        f" {what}"
        for version, what in rows
        if lowest < version <= highest
    ]


def _static_notes(old: Release, new: Release) -> list[str]:
    shape = Shape(old=old, new=new, threads=1, static=True, faults=frozenset(), offline=False)
    notes = [
        f"static members, {row.issue}: {row.why}; let their sessions expire between stop and start"
        for row in KNOWN
        if row.issue == "static rollback" and row.strikes(shape)
    ]
    session_ms = behaviour_of(new.name, None).session_timeout_ms
    if new.latest_version > old.latest_version and "KAFKA-9525" in new.open_issues:
        notes.append(
            f"static members of {new.name} cannot ask for a rebalance (KAFKA-9525): the group stays"
            f" at version {old.latest_version} until a member comes or goes; one that is away for"
            f" longer than its session, {session_ms} ms by default, comes back without tasks, and"
            " one that is left alone asks again and again: keep restarts shorter than"
            " session.timeout.ms, and start or stop a member when all are bounced"
        )
    return notes


def bug_sentences(stops: Sequence[Release], uses: frozenset[str]) -> tuple[str, ...]:
    """Return the known issues that are open in the releases of a way, each once.

    Args:
        stops: releases in the order of the way.
        uses: names of what the application uses; issues of other uses are left out.
    """
    said = []
    for issue in data.ISSUES:
        where = [stop.name for stop in stops if issue.id in stop.open_issues]
        use = _ISSUE_USES.get(issue.id)
        if where and (use is None or use in uses):
            said.append(
                f"{issue.id} in {', '.join(where)}: {issue.summary}"
                f" (fixed in {', '.join(issue.fixed_in)})"
            )
    path = upgrade_path(stops[0], stops[-1])
    if path.rule == "leader's own number" and not any("KAFKA-8649" in one for one in said):
        said.append(path.reasons[0])
    return tuple(said)


def window_sentences(old: Release, new: Release) -> tuple[str, ...]:
    """Return when a JVM leader ends a group with members of ours in it; none without both sorts."""
    if old.is_native == new.is_native:
        return ()
    kafka, native = (new, old) if old.is_native else (old, new)
    last_pin = data.PIN_BY_LAST_SERIES[-1][0]
    if kafka.latest_version < 3:  # noqa: PLR2004 the first version that can be probed
        first = (
            f"a. open: {kafka.name} reads versions 1 and 2 only, and ends the group if it leads a"
            f" member of {native.name} that runs without upgrade.from={kafka.series}"
        )
    elif kafka.latest_version < native.latest_version:
        first = (
            f"a. open where a member of {kafka.name} has upgrade.from up to {last_pin}: if one of"
            f" {kafka.name} leads an unpinned member of {native.name}, until a native leader has"
            " held one rebalance; take such pins out before the bounce"
        )
    else:
        first = (
            f"a. closed: {kafka.name} reads all that a member of {native.name} writes beside it,"
            f" version {native.latest_version} at most"
        )
    second = (
        f"b. closed while the finalized level is held at {native.latest_version}: once members"
        f" write {EARLIEST_NATIVE_VERSION}, a JVM that starts with upgrade.from up to {last_pin}"
        " and leads its first rebalance ends the group; one undisturbed rebalance under any leader"
        " closes it"
    )
    return first, second
