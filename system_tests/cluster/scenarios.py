"""The operator's scripts for the scenarios of KIP-584 and KIP-778, with mistakes.

Each starts with a cluster at rest on its old release and ends with all nodes up and at rest. The
scripts assert nothing: the checkers check the trace.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from probing.features import METADATA_VERSION, UpdateKind, default_levels, find_kafka_release
from system_tests.cluster.nodes.programs import MIGRATION, PROTOCOL_FLAG, Start
from system_tests.cluster.nodes.simulation import Disk
from system_tests.cluster.operate import NotAtRest, Operator
from system_tests.cluster.plan import KraftPlan

_KRAFT: Final = "kraft.version"
_ELR: Final = "eligible.leader.replicas.version"


def run_scenario(operator: Operator, plan: KraftPlan) -> None:
    """Start the cluster and run the script of the scenario."""
    first = Start(program=plan.old, setting=4 if plan.scenario == "double-roll" else None)
    operator.say(f"start {first}")
    for node in list(operator.cluster.nodes):
        operator.cluster.start(node, first)
    with suppress(NotAtRest):  # recorded in the trace
        operator.settle()
        last = _SCRIPTS[plan.scenario](operator, plan)
        operator.heal(last)


def _span(series: str) -> tuple[int, int]:
    return find_kafka_release(series).metadata


def _level(operator: Operator) -> int:
    """Return the current level of the active controller; 0 if there is none."""
    active = operator.cluster.active()
    if active is None or active.machine is None:
        return 0
    return active.machine.finalized.level_of(operator.cluster.realm.governing)


def _roll_up(operator: Operator, plan: KraftPlan, *, but: tuple[str, ...] = ()) -> Start:
    """Bounce to the new release; levels do not change."""
    low, high = _span(plan.new)
    if _level(operator) < low:
        # Repeated until all nodes have it: a node that is stopped before it has read the new level
        # has the old one on disk, and its new release does not start with that.
        operator.update_until_accepted({METADATA_VERSION: low})
    operator.write(3)
    if operator.cluster.scheduler.happens(0.5):
        # A mistake: the old release does not know the level.
        operator.update({METADATA_VERSION: high})
    new = Start(program=plan.new)
    is_eager = operator.cluster.scheduler.happens(0.9 if but else 0.3)
    eager = {METADATA_VERSION: high} if is_eager else None
    operator.roll(new, but=but, eager=eager)
    return new


def _raise(operator: Operator, plan: KraftPlan) -> None:
    """Raise metadata.version, at once or step by step, and the other features of the release."""
    rng = operator.cluster.scheduler
    high = _span(plan.new)[1]
    operator.update({METADATA_VERSION: high}, dry=True)
    if _ELR in find_kafka_release(plan.new).ranges and rng.happens(0.4):
        operator.update({_ELR: 1})  # a mistake while metadata.version is below 4.0-IV1
    while 0 < (level := _level(operator)) < high:
        operator.inject_fault()
        wanted = high if rng.happens(0.4) else rng.delay(level + 1, high)
        if operator.update({METADATA_VERSION: wanted}) is None:
            return
        operator.write(rng.delay(0, 4))
        if rng.happens(0.5):
            operator.settle()
    # All other default levels of the release, in one request.
    others = {name: level for name, level in default_levels(high).items() if name != _KRAFT}
    others.pop(METADATA_VERSION, None)
    if others:
        operator.update(others)


def _request_at_random(operator: Operator, plan: KraftPlan) -> None:
    """Request random changes of levels, also invalid ones."""
    rng = operator.cluster.scheduler
    low, high = _span(plan.new)
    for _ in range(rng.delay(1, 4)):
        operator.inject_fault()
        wanted = rng.delay(max(low - 1, 0), high + 1)
        kind = rng.choose(list(UpdateKind))
        levels = {METADATA_VERSION: wanted}
        if rng.happens(0.3):
            other = rng.choose((_KRAFT, "group.version", _ELR, "transaction.version", "nonsense"))
            levels[other] = rng.delay(0, 2)
        operator.update(levels, kind, dry=rng.happens(0.2))
        operator.write(rng.delay(0, 3))
        if rng.happens(0.5):
            operator.settle()


def _upgrade(operator: Operator, plan: KraftPlan) -> Start:
    new = _roll_up(operator, plan)
    _raise(operator, plan)
    operator.settle()
    if operator.cluster.scheduler.happens(0.5):
        _request_at_random(operator, plan)
    if operator.cluster.scheduler.happens(0.5):
        _start_old_release(operator, plan, new)
    return new


def _start_old_release(operator: Operator, plan: KraftPlan, new: Start) -> None:
    """Restart one node with the old release by mistake, then with the new one again."""
    cluster = operator.cluster
    node = cluster.scheduler.choose(cluster.nodes)
    if len(cluster.controllers) == 1 and node in cluster.controllers:
        return
    operator.say(f"{node.name} is started with {plan.old} by mistake")
    operator.kept_down.add(node.name)
    if node in cluster.brokers and cluster.scheduler.happens(0.7):
        # Its disk is empty and it lags: only its registration shows that it is too old.
        cluster.stop(node)
        node.disk = Disk()
        cluster.do_later(1_600, "lag", node, 3_000, 6_000)
    operator.bounce(node, Start(program=plan.old), wait=False)
    cluster.simulation.run_for(8_000)
    operator.kept_down.discard(node.name)
    operator.bounce(cluster.by_name[node.name], new)


def _downgrade(operator: Operator, plan: KraftPlan) -> Start:
    new = _roll_up(operator, plan)
    _raise(operator, plan)
    operator.write(6)
    operator.settle()
    low, high = _span(plan.old)
    wanted = operator.cluster.scheduler.delay(max(low, _span(plan.new)[0]), high)
    supported = find_kafka_release(plan.old).ranges
    off = {
        name: 0
        for name in default_levels(_span(plan.new)[1])
        if name not in supported and name != METADATA_VERSION
    }
    levels = {METADATA_VERSION: wanted, **_finalized_only(operator, off)}
    if _level(operator) <= wanted:
        levels.pop(METADATA_VERSION)
    if levels:
        outcome = operator.update(levels, UpdateKind.SAFE_DOWNGRADE)
        if outcome is not None and not outcome.ok:
            operator.update(levels, UpdateKind.UNSAFE_DOWNGRADE)
    operator.settle()
    if not _can_run(operator, plan.old):
        return new
    old = Start(program=plan.old)
    operator.roll(old)
    # The release supports this level, but the deprecated minimum may be above it.
    operator.update({METADATA_VERSION: max(low, 5)}, UpdateKind.UNSAFE_DOWNGRADE)
    return old


def _finalized_only(operator: Operator, levels: dict[str, int]) -> dict[str, int]:
    """Return the entries whose feature is finalized; only these can be deleted."""
    active = operator.cluster.active()
    if active is None or active.machine is None:
        return {}
    finalized = active.machine.finalized
    return {name: level for name, level in levels.items() if finalized.level_of(name)}


def _can_run(operator: Operator, series: str) -> bool:
    """Whether a series supports all finalized levels."""
    active = operator.cluster.active()
    if active is None or active.machine is None:
        return False
    ranges = find_kafka_release(series).ranges
    return all(
        name in ranges and level in ranges[name]
        for name, level in active.machine.finalized.levels.items()
    )


def _minority(operator: Operator, plan: KraftPlan) -> Start:
    """Upgrade while a minority of the quorum is offline; it returns on the old release first."""
    cluster = operator.cluster
    names = cluster.scheduler.shuffled(cluster.quorum)[: (len(cluster.quorum) - 1) // 2]
    for name in names:
        operator.kept_down.add(name)
        cluster.stop(cluster.by_name[name])
    operator.say(f"{', '.join(names)} stay offline")
    new = _roll_up(operator, plan, but=tuple(names))
    _raise(operator, plan)
    operator.write(2)
    for name in names:
        operator.say(f"{name} comes back with {plan.old}")
        cluster.start(cluster.by_name[name], Start(program=plan.old))
        cluster.simulation.run_for(cluster.scheduler.delay(500, 4_000))
    operator.settle()
    for name in names:
        operator.kept_down.discard(name)
        # Its disk may have a level that the new release does not support.
        operator.format_anew(cluster.by_name[name], new)
        operator.bounce(cluster.by_name[name], new)
    return new


def _preview(operator: Operator, plan: KraftPlan) -> Start:
    """Upgrade a cluster without levels, raise them, and sometimes roll everything back."""
    new = _roll_up(operator, plan)
    if operator.cluster.scheduler.happens(0.3) and _can_run(operator, plan.old):
        operator.roll(Start(program=plan.old))  # no level was written yet
        operator.roll(new)
    _raise(operator, plan)
    operator.settle()
    if operator.cluster.scheduler.happens(0.3):
        operator.update({METADATA_VERSION: 1}, UpdateKind.UNSAFE_DOWNGRADE)
        operator.settle()
        if _level(operator) == 1 and _can_run(operator, plan.old):
            old = Start(program=plan.old)
            operator.roll(old)
            return old
    return new


def _double_roll(operator: Operator, _plan: KraftPlan) -> Start:
    """Go from the setting to the flag with two rolling bounces, and sometimes roll back."""
    rng = operator.cluster.scheduler
    operator.update({PROTOCOL_FLAG: MIGRATION})  # phase 1: nothing is finalized yet
    operator.roll(Start(program="after", setting=4))
    operator.update({PROTOCOL_FLAG: MIGRATION})
    second = Start(program="after", setting=rng.delay(MIGRATION, 6))
    names = rng.shuffled([node.name for node in operator.cluster.nodes])
    for place, name in enumerate(names):
        if place == len(names) // 2:
            operator.update({PROTOCOL_FLAG: 6})  # a mistake: half of the nodes are in phase 1
        operator.bounce(operator.cluster.by_name[name], second)
    operator.update({PROTOCOL_FLAG: MIGRATION})
    operator.settle()
    operator.update({PROTOCOL_FLAG: 6})
    if rng.happens(0.5):
        operator.update({PROTOCOL_FLAG: MIGRATION}, UpdateKind.SAFE_DOWNGRADE)
    if rng.happens(0.5):
        retired = Start(program="after")
        operator.roll(retired)  # phase 4: the setting is gone, the flag stays
        operator.update({PROTOCOL_FLAG: 6})
        return retired
    operator.say("emergency: back to the setting, then to the old release")
    operator.roll(Start(program="after", setting=4))
    before = Start(program="before", setting=4)
    operator.roll(before)
    return before


def _lag(operator: Operator, plan: KraftPlan) -> Start:
    """Raise and lower a level while brokers lag and group members restart."""
    cluster, rng = operator.cluster, operator.cluster.scheduler
    new = _roll_up(operator, plan)
    for _ in range(rng.delay(2, 4)):
        for broker in cluster.brokers:
            if rng.happens(0.5):
                cluster.do_later(0, "lag", broker, rng.delay(1_000, 6_000), 15_000)
        level, (low, high) = _level(operator), _span(plan.new)
        if level < high and rng.happens(0.7):
            operator.update({METADATA_VERSION: rng.delay(level + 1, high)})
        else:
            wanted = rng.delay(low, max(level - 1, low))
            operator.update({METADATA_VERSION: wanted}, UpdateKind.SAFE_DOWNGRADE)
        if operator.group.size and rng.happens(0.4):
            cluster.simulation.run_for(rng.delay(0, 3_000))
            operator.group.restart(rng.delay(0, operator.group.size - 1))
        cluster.simulation.run_for(rng.delay(500, 12_000))
    return new


_SCRIPTS: Final[dict[str, Callable[[Operator, KraftPlan], Start]]] = {
    "upgrade": _upgrade,
    "downgrade": _downgrade,
    "minority": _minority,
    "preview": _preview,
    "double-roll": _double_roll,
    "lag": _lag,
}
