"""Makes lines of the trace from reports.

A leader decides before it knows the generation, so a decision waits here for the assignment that
the leader itself takes a few milliseconds later, and is then traced with that generation.
"""

from collections.abc import Iterator

from encoding import shown
from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    ClientRebootstrapped,
    MemberFailed,
    PartitionsLost,
    RejoinRequested,
    Report,
)
from system_tests.live.group import GroupView, Presence
from system_tests.trace import Symbol, TraceLine, draw_lanes


class Narrator:
    """Makes the lines of the trace from reports.

    Args:
        group: the view, already up to date with the report.
        began_ms: monotonic milliseconds at which the trace begins.
    """

    def __init__(self, group: GroupView, *, began_ms: float) -> None:
        self._group = group
        self._began_ms = began_ms
        self._undated: dict[str, list[tuple[float, str]]] = {}

    def trace_ms(self, at_ms: float) -> int:
        """Turn monotonic milliseconds into those of the trace."""
        return max(0, round(at_ms - self._began_ms))

    def line(
        self,
        text: str,
        *,
        at_ms: float,
        acting: dict[str, Symbol] | None = None,
        generation: int | None = None,
    ) -> TraceLine:
        """Return a line with the lanes of all members."""
        down = {m.name for m in self._group.members.values() if m.presence is not Presence.UP}
        return TraceLine(
            at_ms=self.trace_ms(at_ms),
            generation=generation,
            lanes=draw_lanes(tuple(self._group.members), acting=acting or {}, down=down),
            text=text,
        )

    def tell(self, report: Report) -> Iterator[TraceLine]:
        """Return the lines of one report; most have none."""
        member = report.member
        generation = self._group.members[member].generation
        match report.event:
            case AnswersDecided() as decision:
                self._undated[member] = [
                    (report.at_ms, f"join {_joined(decision)}{_outsiders(decision)}"),
                    (report.at_ms, _answers(decision)),
                    *((report.at_ms, f"warning: {text}") for text in decision.warnings),
                ]
            case AssignmentTaken() as taken:
                for at_ms, text in self._undated.pop(member, ()):
                    yield self.line(
                        text,
                        at_ms=at_ms,
                        acting={member: Symbol.LEADS},
                        generation=taken.generation,
                    )
                if taken.error_code:
                    text = f"{member} got error {taken.error_code} instead of tasks"
                    yield self.line(text, at_ms=report.at_ms, generation=taken.generation)
            case RejoinRequested() as rejoin:
                symbol, text = _rejoin(rejoin, member)
                acting = {} if symbol is None else {member: symbol}
                yield self.line(text, at_ms=report.at_ms, acting=acting, generation=generation)
            case PartitionsLost(partitions=partitions):
                listed = " ".join(str(partition) for partition in partitions)
                text = f"{member} was removed from the group and lost partitions {listed}"
                yield self.line(text, at_ms=report.at_ms)
            case ClientRebootstrapped(rule=rule):
                text = f"{member} goes back to its bootstrap servers: {rule}"
                yield self.line(text, at_ms=report.at_ms)
            case MemberFailed(why=why):
                for at_ms, text in self._undated.pop(member, ()):
                    yield self.line(text, at_ms=at_ms, acting={member: Symbol.LEADS})
                yield self.line(f"fails: {why}", at_ms=report.at_ms, acting={member: Symbol.STOPS})
            case _:
                return


def _joined(decision: AnswersDecided) -> str:
    """Return used/latest version of each member; below version 3 the latest one is unknown."""
    return " ".join(
        f"{_short(name)}:v{used}/{supported}" if supported > 0 else f"{_short(name)}:v{used}"
        for name, used, supported in decision.joined
    )


def _outsiders(decision: AnswersDecided) -> str:
    text = ""
    if decision.future_members:
        text += f"  future {' '.join(_short(name) for name in decision.future_members)}"
    if decision.quarantined_members:
        text += f"  quarantined {' '.join(_short(name) for name in decision.quarantined_members)}"
    return text


def _short(member_id: str) -> str:
    """Return the client id of a member id, which is the name of its lane."""
    return shown(member_id.rsplit("-", 5)[0] or member_id)


def _answers(decision: AnswersDecided) -> str:
    common = decision.commonly_supported_version
    text = f"assign v{decision.version}"
    if common > 0:
        text += f" common v{common}"
    if decision.empty_members:
        text += f", empty to {' '.join(_short(name) for name in decision.empty_members)}"
    if decision.next_version not in (0, decision.version):
        text += f", next v{decision.next_version}"
    return f"{text}  version probing" if decision.version_probing else text


def _rejoin(rejoin: RejoinRequested, member: str) -> tuple[Symbol | None, str]:
    before, after = rejoin.used_version_before, rejoin.used_version_after
    if not rejoin.for_version:
        return None, f"{member} rejoins at v{after}: {rejoin.why}"
    if after < before:
        return Symbol.DOWNGRADES, f"downgrade v{before} -> v{after}, rejoin"
    if after > before:
        return Symbol.UPGRADES, f"upgrade v{before} -> v{after}, rejoin"
    return None, f"{member} rejoins at v{after}: {rejoin.why}"
