"""Whether a member asks for a rebalance because it found newer finalized levels (KIP-584, T3)."""

from probing.features import FinalizedLevels, LookNumbers, decide_look
from probing.member.events import RejoinNow
from probing.member.level_cap import protocol_level
from probing.member.next_subscription import MemberState


def rejoin_for_levels(
    state: MemberState, found: FinalizedLevels, *, leads: bool, is_led_by_jvm: bool
) -> RejoinNow | None:
    """Return the rejoin of a member that found levels; None if it has no need to ask.

    A native leader asks, since one rebalance informs the whole group. A JVM leader does not know
    levels; under it, each member that writes above the level asks for itself.

    Args:
        state: of the member. Levels that it knows already need no further rebalance.
        found: the newest levels of the member's own polls.
        leads: the member leads the generation.
        is_led_by_jvm: the member's last answer came from a JVM leader.
    """
    look = decide_look(LookNumbers(polled=found, adopted=state.known_levels))
    level = protocol_level(found)
    is_above = level is not None and state.used_version > level
    has_to_ask = leads or (is_led_by_jvm and is_above)
    if not (look.starts_rebalance and has_to_ask):
        return None
    return RejoinNow(used_version=state.used_version, rule=look.rule, why=look.why)
