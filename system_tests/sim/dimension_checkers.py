"""Rules of groups with dimensions: cooperative members, routing, copies, answers that are kept.

Each rule gets one event, which holds all that it needs, so that a search can check it in any state.
The rules of `checkers` hold for such groups as well.
"""

from collections.abc import Callable, Iterable
from typing import Final

from encoding import HostInfo, TaskId, TopicPartition
from system_tests.engine import Broken, Checker, check_event
from system_tests.sim.events import (
    AtRest,
    Decided,
    Drained,
    Followed,
    Happening,
    Hosts,
    Partitions,
    Rested,
    hosts_of,
)

_HOSTS_SINCE = 2
_STANDBY_HOSTS_SINCE = 6


def revoked_before_given(_: object, event: Decided) -> str | None:
    """A native leader gives no partition to a member while another one still has it (KIP-429)."""
    if not event.leader_is_native:
        return None
    for member in event.members:
        gained = set(member.partitions).difference(member.owned)
        for other in event.members:
            if other.thread != member.thread and not gained.isdisjoint(other.owned):
                both = _named(gained.intersection(other.owned))
                return f"{member.thread} is given {both}, which {other.thread} has not given up"
    return None


def reports_what_it_holds(_: object, event: Decided) -> str | None:
    """A member names the routing view that it holds; without one it asks for a whole view."""
    for member in event.members:
        if member.reported != member.holds:
            return (
                f"{member.thread} reports {_view(member.reported)} and holds {_view(member.holds)}"
            )
    return None


def form_fits_report(_: object, event: Decided) -> str | None:
    """A delta or a reference is sent only to a member that says that it holds a view."""
    for member in event.members:
        if member.reported is None and member.form in ("delta", "reference"):
            return f"{member.thread} reports no view and is sent a {member.form}"
    return None


def gets_its_own_answer(_: object, event: Followed) -> str | None:
    """A thread that takes an answer, restarted static members included, gets its own part.

    A restarted static member gets what it got before in the same generation.
    """
    if event.decided is None or not event.is_followed:
        return None
    meant = [m.partitions for m in event.decided.members if m.thread == event.thread]
    if not meant or event.partitions in meant:
        return None
    return (
        f"{event.thread} took {_named(event.partitions)} in generation {event.decided.generation},"
        f" whose leader gave it {_named(meant[-1])}"
    )


def routes_as_decided(_: object, event: Followed) -> str | None:
    """Under a native leader a member routes as the leader decided, or not at all.

    A delta or a reference against another view than the member holds is never acted upon.
    """
    decided = event.decided
    if decided is None or not (event.is_followed and decided.leader_is_native):
        return None
    forms = {member.form for member in decided.members if member.thread == event.thread}
    if event.active and not event.has_view and forms & {"full", "delta", "reference"}:
        return f"{event.thread} holds no view and routes all the same"
    for kind, has, wants in (
        ("active tasks", event.active, decided.active),
        ("standby tasks", event.standby, decided.standby),
    ):
        if has and has != wants:
            return f"{event.thread} routes by other {kind} than decided: {_difference(has, wants)}"
    return None


def endpoints_at_rest(_: object, event: Rested) -> str | None:
    """A member that gets host maps knows the endpoint of each member, and no other."""
    wanted = {host for host, _ in _served(event, lambda member: member.partitions)}
    for member in event.members:
        found = {host for host, _ in member.active}
        if found != wanted and (found or _must_route(member, event)):
            missing, dead = sorted(wanted - found), sorted(found - wanted)
            problems = [f"does not know {_hosts(missing)}"] if missing else []
            problems += [f"knows {_hosts(dead)}, where no member runs"] if dead else []
            return f"the group rests, and {member.thread} {' and '.join(problems)}"
    return None


def owners_at_rest(_: object, event: Rested) -> str | None:
    """A member that gets routing knows for every task the process that runs it, and its copies."""
    inputs = {p.partition: p for member in event.members for p in member.partitions}
    active = _served(event, lambda member: member.partitions)
    standby = _served(event, lambda member: (inputs[t.partition] for t in member.standby_tasks))
    for member in event.members:
        if not member.active and not _must_route(member, event):
            continue
        if member.active != active:
            why = _difference(member.active, active)
            return f"the group rests, and {member.thread} routes wrongly: {why}"
        if member.answered >= _STANDBY_HOSTS_SINCE and member.standby != standby:
            why = _difference(member.standby, standby)
            return f"the group rests, and {member.thread} looks for copies wrongly: {why}"
    return None


def standbys_as_asked(_: object, event: Rested) -> str | None:
    """At rest each task has as many copies as asked, as far as there are processes for them.

    While tasks are warmed up there are more, by max.warmup.replicas at most.
    """
    if event.standbys is None:
        return None
    copies = _copies(event)
    processes = {member.process for member in event.members}
    wanted = min(event.standbys, len(processes) - 1)
    more = 0
    for task, _ in _actives(event):
        found = len(copies.get(task, ()))
        if found < wanted:
            return f"the group rests, and {task} has {found} of {wanted} standby copies"
        more += found - wanted
    most = 0 if event.is_quiet else event.warmups
    if more > most:
        return f"the group rests with {more} copies above {wanted} a task, and {most} may warm up"
    return None


def warmups_as_marked(_: object, event: Rested) -> str | None:
    """Native members know which of their copies are warm-ups: those above what is asked for.

    JVM members, and their leaders, do not tell the two apart.
    """
    if event.standbys is None or not all(m.hears_of_warmups for m in event.members):
        return None
    marked: dict[TaskId, int] = {}
    for member in event.members:
        for task in member.warmup_tasks:
            if task not in member.standby_tasks:
                return f"{member.thread} warms {task} up and has no copy of it"
            marked[task] = marked.get(task, 0) + 1
    if marked and event.is_quiet:
        return f"the group rests, and {min(marked)} is warmed up still"
    for task, places in sorted(_copies(event).items()):
        if len(places) - marked.get(task, 0) > event.standbys:
            return f"{task} has {len(places)} copies, of which {marked.get(task, 0)} are warm-ups"
    return None


def standby_elsewhere(_: object, event: Rested) -> str | None:
    """No copy is on the process that runs the task, and none twice on one process."""
    if event.standbys is None:
        return None
    running = dict(_actives(event))
    for task, places in sorted(_copies(event).items()):
        if running.get(task) in places:
            return f"{task} runs on a process that has a standby copy of it"
        if len(set(places)) != len(places):
            return f"{task} has two standby copies on one process"
    return None


def warmups_end(_: object, event: Drained) -> str | None:
    """Warm-ups are promoted within the bound of rebalances, after which the group is at rest."""
    if event.rounds <= event.bound:
        return None
    return f"follow-up rebalances do not end: {event.rounds} so far, {event.bound} are promised"


DIMENSION_RULES: Final = (
    Checker("revoked before given", revoked_before_given, (Decided,)),
    Checker("reports what it holds", reports_what_it_holds, (Decided,)),
    Checker("form fits the report", form_fits_report, (Decided,)),
    Checker("own answer", gets_its_own_answer, (Followed,)),
    Checker("routes as decided", routes_as_decided, (Followed,)),
    Checker("endpoints at rest", endpoints_at_rest, (Rested,)),
    Checker("owners at rest", owners_at_rest, (Rested,)),
    Checker("standbys as asked", standbys_as_asked, (Rested,)),
    Checker("warm-ups as marked", warmups_as_marked, (Rested,)),
    Checker("standby elsewhere", standby_elsewhere, (Rested,)),
    Checker("warm-ups end", warmups_end, (Drained,)),
)
"""Every rule of a group with dimensions, in the order in which they are asked."""


def check_dimensions(happening: Happening) -> list[Broken]:
    """Check one event by every rule."""
    return check_event(None, happening, DIMENSION_RULES)


def _must_route(member: AtRest, event: Rested) -> bool:
    """Whether a member must be sent hosts; version 1 has no field for them."""
    return event.has_room and member.answered >= _HOSTS_SINCE


def _served(event: Rested, of: Callable[[AtRest], Iterable[TopicPartition]]) -> Hosts:
    """Host -> partitions of the members that run there."""
    return hosts_of((member.endpoint, of(member)) for member in event.members)


def _actives(event: Rested) -> list[tuple[TaskId, int]]:
    """Each task with the process that runs it."""
    return [(task, member.process) for member in event.members for task in member.active_tasks]


def _copies(event: Rested) -> dict[TaskId, list[int]]:
    """Task -> processes that have a standby copy of it, or warm it up."""
    found: dict[TaskId, list[int]] = {}
    for member in event.members:
        for task in member.standby_tasks:
            found.setdefault(task, []).append(member.process)
    return found


def _difference(has: Hosts, wants: Hosts) -> str:
    """Return the first host at which two maps differ."""
    known, wanted = dict(has), dict(wants)
    for host in sorted({*known, *wanted}):
        if known.get(host) != wanted.get(host):
            found = _named(known[host]) if host in known else "no such host"
            right = _named(wanted[host]) if host in wanted else "no such host"
            return f"{_hosts([host])}: {found} instead of {right}"
    return "nothing"


def _hosts(hosts: Iterable[HostInfo]) -> str:
    return ", ".join(f"{host}:{port}" for host, port in hosts)


def _named(partitions: Partitions | Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions)) or "nothing"


def _view(reference: tuple[int, int] | None) -> str:
    return "no view" if reference is None else f"view {reference[0]}/{reference[1]:08x}"
