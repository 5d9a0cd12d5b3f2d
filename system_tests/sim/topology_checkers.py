"""Rules of a rolling change of the topology, over the whole trace of a bounce.

Known limit of the rules: once no live member has the new form, the group remembers it only if the
leader does, or two processes do. Where that is not so, units may return to the old form.
"""

from typing import Final

from encoding import TaskId
from system_tests.engine import Checker, Finished
from system_tests.sim.events import Answered, Settled, Took
from system_tests.sim.topology_evidence import TopologyEvidence
from system_tests.topology_changes import NEW_VERSION, OLD_VERSION


def runs_what_it_carries(evidence: TopologyEvidence, event: Answered) -> str | None:
    """No leader gives a member a task of a form that its program has not."""
    for answer in event.answers:
        for task in answer.tasks:
            versions = evidence.forms[task.subtopology].versions
            if {*versions}.isdisjoint(evidence.joined_versions(answer)):
                return f"{answer.thread} is given {_named(evidence, task)}, which it cannot run"
    return None


def one_form(evidence: TopologyEvidence, event: Took) -> str | None:
    """A partition of a family runs once, in one form, on one member of the group."""
    if event.member_id not in evidence.members:
        return None
    units = [evidence.unit(task) for task in event.active_tasks]
    twice = sorted({unit for unit in units if units.count(unit) > 1})
    if twice:
        return f"{event.thread} runs two forms of {twice[0][0]}-{twice[0][1]}"
    for thread, tasks in sorted(evidence.tasks.items()):
        if thread != event.thread and evidence.in_group(thread):
            both = sorted({*units} & {evidence.unit(task) for task in tasks})
            if both:
                topic, number = both[0]
                return f"{event.thread} runs a form of {topic}-{number}, as {thread} does"
    return None


def no_return(evidence: TopologyEvidence, event: Took) -> str | None:
    """What ran in the new form does not return to the old one by itself."""
    if event.member_id not in evidence.members:
        return None
    for task in sorted(event.active_tasks):
        if evidence.is_superseded(task) and evidence.unit(task) in evidence.ran_new:
            return f"{event.thread} runs {_named(evidence, task)} in the old form again"
    return None


def owner_where_possible(evidence: TopologyEvidence, event: Settled) -> str | None:
    """In a settled group every task that a member can run has an owner.

    A unit whose family has reached the new version waits if no live member has the new form.
    """
    del event
    running = {task for thread in evidence.up for task in evidence.tasks.get(thread, ())}
    units = {evidence.unit(task) for task in running}
    live = {version for thread in evidence.up for version in evidence.carries[thread]}
    for number, form in enumerate(evidence.forms):
        if live.isdisjoint(form.versions):
            continue
        for partition in range(evidence.partitions):
            task = TaskId(number, partition)
            waits = evidence.reached and evidence.is_superseded(task) and NEW_VERSION not in live
            if not waits and evidence.unit(task) not in units:
                return f"the group is settled, and no member runs {_named(evidence, task)}"
    return None


def keeps_a_share(evidence: TopologyEvidence, event: Settled) -> str | None:
    """Balance leaves a partition to each member that runs a changed subtopology, in its form."""
    del event
    if evidence.most_rebalances is None or evidence.partitions < len(evidence.up):
        return None
    lost = sorted(evidence.holders - evidence.changed_holders())
    if lost:
        return f"{lost[0]} has lost its last partition of the changed subtopology"
    return None


def switches_together(evidence: TopologyEvidence, event: Took) -> str | None:
    """Where all members carry the old topology, the new one runs once all carry it.

    A member that is asked what it carries and does not get the question is left out, which is a
    known limit.
    """
    if not (evidence.held_back and evidence.is_reliable) or event.member_id not in evidence.members:
        return None
    for task in sorted(event.active_tasks):
        form = evidence.forms[task.subtopology]
        is_changed = any(
            other.topic == form.topic and other.versions == (OLD_VERSION,)
            for other in evidence.forms
        )
        if is_changed and OLD_VERSION not in form.versions:
            return f"{event.thread} runs {_named(evidence, task)}, which not all members carry"
    return None


def few_rebalances(evidence: TopologyEvidence, event: Settled) -> str | None:
    """A step of the operator costs at most one rebalance more than without a change."""
    del event
    most = evidence.most_rebalances
    if most is None or evidence.rebalances <= most:
        return None
    return f"the group rests after {evidence.rebalances} rebalances, and {most} are promised"


def ends_as_new(evidence: TopologyEvidence, _: Finished) -> str | None:
    """After the last step exactly the tasks of the new topology run.

    Members that carry both topologies run a removed subtopology until programs without it come.
    """
    running = {task for thread in evidence.up for task in evidence.tasks.get(thread, ())}
    live = {version for thread in evidence.up for version in evidence.carries[thread]}
    tasks = (
        TaskId(number, partition)
        for number, form in enumerate(evidence.forms)
        if not live.isdisjoint(form.versions)
        for partition in range(evidence.partitions)
    )
    wanted = {task for task in tasks if not evidence.is_superseded(task)}
    if running == wanted:
        return None
    missing, more = sorted(wanted - running), sorted(running - wanted)
    listed = [f"{_named(evidence, task)} does not run" for task in missing[:1]]
    listed += [f"{_named(evidence, task)} runs" for task in more[:1]]
    return f"at the end, {' and '.join(listed)}"


def _named(evidence: TopologyEvidence, task: TaskId) -> str:
    form = evidence.forms[task.subtopology]
    versions = " and ".join(map(str, form.versions))
    return f"{form.topic}-{task.partition} of topology version {versions}"


TOPOLOGY_RULES: Final = (
    Checker("runs what it carries", runs_what_it_carries, (Answered,)),
    Checker("one form", one_form, (Took,)),
    Checker("no return", no_return, (Took,)),
    Checker("owner where possible", owner_where_possible, (Settled,)),
    Checker("switches together", switches_together, (Took,)),
    Checker("keeps a share", keeps_a_share, (Settled,)),
    Checker("few rebalances", few_rebalances, (Settled,)),
    Checker("ends as new", ends_as_new, (Finished,)),
)
"""Every rule of a change of the topology, in the order in which they are asked."""
