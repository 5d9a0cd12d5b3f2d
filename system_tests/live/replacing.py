"""All brokers are replaced in the middle of a bounce: whoever does not begin again is lost."""

from time import monotonic

from system_tests.live.environment import World
from system_tests.live.events import BeganAgain
from system_tests.live.processes import Crew


def replace_brokers(crew: Crew, world: World, limit_s: float) -> None:
    """Replace them, and wait until every member has gone back to its bootstrap servers.

    Raises:
        NotInTimeError: a member did not within `limit_s`.
        MemberDiedError: a member ended instead.
    """
    if world.replace_brokers is None:
        return
    began_ms = monotonic() * 1000
    crew.say("all brokers are replaced by new ones, on new ports behind the same address")
    world.replace_brokers()

    def missing() -> str | None:
        back = {
            report.member
            for report in crew.reports
            if isinstance(report.event, BeganAgain) and report.at_ms >= began_ms
        }
        left = sorted({member.name for member in crew.group.alive} - back)
        return f"{', '.join(left)} did not begin again at the bootstrap servers" if left else None

    crew.wait(missing, timeout_s=limit_s)
