"""The questions of a group that has come to rest, or hangs."""

from system_tests.explore.moves import Progress
from system_tests.explore.world import StillWorld
from system_tests.sim import Broken, Evidence, Plan, check_step
from system_tests.sim.happenings import Settled
from system_tests.sim.liveness import check_final_versions


def judge(
    world: StillWorld, evidence: Evidence, progress: Progress, plan: Plan, *, rests: bool
) -> list[Broken]:
    """Return the rules that a group breaks in which nothing happens any more by itself.

    Args:
        world: the group.
        evidence: what the checkers know of it.
        progress: how far the operator has come.
        plan: what the operator does.
        rests: every thread has what it waits for; if not, the group hangs.
    """
    up = [thread for thread in world.threads if thread.is_up]
    if not rests:
        if not up:
            return []
        why = ", ".join(f"{t.name} is {t.phase.value}" for t in up if not t.is_resting)
        return [
            Broken(
                rule="settles",
                at_ms=0,
                sentence=f"nothing more happens, and {why or 'the group is not of one mind'}",
            )
        ]
    used = tuple((thread.name, thread.streams.state.used_version) for thread in up)
    settled = Settled(0, world.group.generation, "", used)
    broken = check_step(evidence, settled)
    if progress.is_done(plan):
        broken += check_final_versions(
            [settled], plan.promised_versions, is_uniform=plan.is_uniform
        )
    return broken
