"""What an operator sees, watches and decides in each step of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass

from probing import find_release
from system_tests.plan.cost import StepCost
from system_tests.plan.cost_text import (
    AFTER_RESET,
    causes_of,
    count_text,
    duration_text,
    price_of_return,
    printed_most_s,
    seconds_text,
    session_timeout_s,
)
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.model import PlanStep
from system_tests.plan.rehearsal import Rehearsal, rehearsal_of
from system_tests.plan.steps import UpgradePlan
from system_tests.plan.text import back_lines, demands_of, settings_of, step_text

_PATIENCE = 2
_LEAST_WAIT_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSigns:
    """One step as an operator follows it; every field is a sentence or several.

    Attributes:
        todo: what is done; demands: what else that takes.
        rehearsal: how it is rehearsed, or why it cannot be.
        seen: what is normal meanwhile.
        done: what shows that a member is done, and the next one can be stopped.
        stop: when to stop and decide.
        back: how to go back, and what that costs.
    """

    todo: str
    demands: tuple[str, ...]
    rehearsal: Rehearsal
    seen: tuple[str, ...]
    done: tuple[str, ...]
    stop: tuple[str, ...]
    back: tuple[str, ...]


def signs_of(
    made: UpgradePlan, step: PlanStep, so_far: Sequence[StepCost], group: SimulatedGroup
) -> StepSigns:
    """Return what an operator sees and decides in a step of a plan.

    `so_far`: the costs of the steps up to this one; empty if nothing is simulated.
    """
    cost = so_far[-1] if so_far and so_far[-1].is_cost else None
    wait_s = _wait_s(step, cost, group)
    return StepSigns(
        todo=step_text(step, group),
        demands=demands_of(step, group),
        rehearsal=rehearsal_of(made, step, group),
        seen=(
            version_text(step),
            *(so_far[-1].verdict if so_far else ()),
            *(() if cost is None else _seen(step, cost, group)),
        ),
        done=(_sign_of_done(step),),
        stop=(
            f"not Stable {wait_s:.0f} s after a start",
            f"lag that grows {wait_s:.0f} s after Stable",
        ),
        back=(
            *back_lines(step, group),
            *(price_of_return([step], so_far[-1:]) if so_far else ()),
        ),
    )


def _seen(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> tuple[str, ...]:
    mostly = [
        f"{100 * cause.share:.0f} % of all pauses together: {cause.what}"
        for cause in causes_of(step, cost, group)[:1]
    ]
    return (
        f"the step {duration_text(cost, is_rolling=step.rolling)}",
        f"{count_text(cost, 'rebalances')} rebalances for {group.members} members",
        f"a partition pauses {seconds_text(cost, 'longest_pause_ms')} at most",
        f"all partitions together pause {seconds_text(cost, 'pause_ms')}",
        *([AFTER_RESET] if step.resets else []),
        *mostly,
    )


def _wait_s(step: PlanStep, cost: StepCost | None, group: SimulatedGroup) -> float:
    """Return after which time an operator stops and decides; `patience` says how it is made."""
    if cost is None:
        largest = max(group.rates.sizes, default=0) * step.deletes_state
        longest_s = session_timeout_s(step, group) + largest / group.restore
    else:
        longest_s = printed_most_s(cost, "longest_pause_ms")
    return max(_PATIENCE * longest_s, _LEAST_WAIT_MS / 1000)


def patience(*, simulated: bool) -> str:
    """Return how the seconds in `StepSigns.stop` follow, as a sentence without a full stop."""
    longest = (
        "the longest pause of a partition in the step, as printed (the upper end of its range)"
        if simulated
        else "the session timeout of the members that are stopped, and where state is deleted the"
        " restore of the largest changelog"
    )
    return (
        f"the seconds are {_PATIENCE} times {longest}, and at least {_LEAST_WAIT_MS / 1000:g};"
        " Stable is the state that inspect shows"
    )


def _sign_of_done(step: PlanStep) -> str:
    """Return what shows that a member runs as the step demands."""
    release = find_release(step.release)
    if step.old == step.release:
        # As Kafka logs its settings.
        own = (
            setting.replace("no upgrade.from", "upgrade.from=null") for setting in settings_of(step)
        )
        shown = [setting.replace("=", " = ") for setting in own]
        return f"the log of the member shows {' and '.join(shown)}"
    if release.is_native:
        return f"release native v{_written(release.name, None)} in the row of the member"
    # Several releases write the same versions, so `inspect` shows a range of them.
    return f"the log of the member shows Kafka version: {release.name}"


def always(group: SimulatedGroup) -> tuple[str, str]:
    """Return where to look in every step, and when to stop in every step, as two sentences."""
    watch = (
        f"assignor inspect --bootstrap-server HOST:PORT --group {group.id} --watch 2: state Stable,"
        " and lag that falls again; the log of the bounced member: RUNNING, no ERROR"
    )
    stop = (
        "a member ends or restarts by itself; a line with ! of inspect that names another member"
        f" than those still to be bounced stays {_LEAST_WAIT_MS / 1000:g} s after Stable"
    )
    return watch, stop


def version_text(step: PlanStep) -> str:
    """Return which version of the protocol the group uses in a step."""
    old, new = _written(step.old, step.old_upgrade_from), _written(step.release, step.upgrade_from)
    if not step.rolling:
        return f"no member is up until all are started; then version {new}"
    if old == new:
        return f"version {new} all the time"
    if old > new:
        return f"version {new} from the first member on"
    pin = f" with upgrade.from={step.old_upgrade_from}" if step.old_upgrade_from else ""
    return f"version {old} until the last member of {step.old}{pin} has stopped, then {new}"


def _written(name: str, upgrade_from: str | None) -> int:
    """Return the version that a group writes whose members all run a release with a setting."""
    release = find_release(name)
    pinned = release.upgrade_from[upgrade_from].pinned_version if upgrade_from else None
    return pinned or release.latest_native_version or release.latest_version
