"""All brokers are replaced in the middle of a bounce; clients must rebootstrap (KIP-1102)."""

from time import monotonic

from system_tests.live.environment import Environment
from system_tests.live.events import ClientRebootstrapped
from system_tests.live.processes import Members


def replace_brokers(members: Members, environment: Environment, limit_s: float) -> None:
    """Replace all brokers, and wait until the new ones have a heartbeat of every member.

    A member that is stopped before it knows its new coordinator cannot leave the group.

    Raises:
        NotInTimeError: a member did not within `limit_s`.
        MemberDiedError: a member ended instead.
    """
    if environment.replace_brokers is None:
        return
    began_ms = monotonic() * 1000
    members.say("all brokers are replaced by new ones, on new ports behind the same address")
    heard = environment.replace_brokers()

    def missing() -> str | None:
        alive = {member.name for member in members.view.alive}
        rebootstrapped = {
            report.member
            for report in members.reports
            if isinstance(report.event, ClientRebootstrapped) and report.at_ms >= began_ms
        }
        if left := sorted(alive - rebootstrapped):
            return f"{', '.join(left)} did not go back to the bootstrap servers"
        if silent := sorted(alive - heard()):
            return f"{', '.join(silent)} sent no heartbeat to the new brokers"
        return None

    members.wait(missing, timeout_s=limit_s)
