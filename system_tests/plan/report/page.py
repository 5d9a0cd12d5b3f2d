"""The page of an upgrade: decision, conditions, steps and a simulated bounce, in one HTML file.

Everything on it is in the plan or in the costs. The Content-Security-Policy forbids every request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path

from encoding import shown
from probing import Direction
from system_tests.plan.changes import When
from system_tests.plan.cost import Leg, StepCost, legs_of, options_of
from system_tests.plan.cost_text import (
    actions_before,
    definitions,
    price_of_return,
    seconds_text,
    simulated_text,
)
from system_tests.plan.decision import decision_of, no_return_text
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.notes import NO_GO
from system_tests.plan.rehearsal import not_rehearsed, rehearsal_notes
from system_tests.plan.report.chart import COLOURS, chart_svg
from system_tests.plan.report.html import (
    SIGNATURES,
    Condition,
    conditions_html,
    facts_html,
    list_html,
    page_html,
    table_html,
    text_html,
    write_html,
)
from system_tests.plan.report.signs import StepSigns, always, patience, signs_of
from system_tests.plan.steps import UpgradePlan
from system_tests.plan.text import (
    WAY_BACK_IS,
    assumptions,
    headline,
    other_ways,
    state_directory,
)
from system_tests.plan.workers import run_jobs
from system_tests.report import Story, story_of_simulation
from system_tests.sim import run_bounce


def plan_page(
    made: UpgradePlan,
    costs: Sequence[StepCost] | None,
    group: SimulatedGroup,
    progress: Callable[[int], object] = lambda _: None,
) -> str:
    """Return the page as HTML; deterministic.

    Args:
        made: the plan.
        costs: of its steps, in order; None: the page has neither costs nor pictures.
        group: that they are simulated with.
        progress: as of `run_jobs`; `pictures_of` tells how many bounces are simulated.
    """
    steps = [
        signs_of(made, step, (costs or ())[:number], group)
        for number, step in enumerate(made.steps, 1)
    ]
    named = f", group {shown(group.name, limit=None)}" if group.name else ""
    title = f"{made.old} to {made.new}{named}"
    watch, stop = always(group)
    left_out = "; ".join(not_rehearsed(made))
    rehearsals = "; ".join(rehearsal_notes(made, group))
    found = _conditions(made, actions_before(made.steps, costs, group) if costs else [])
    return page_html(
        title,
        decision_of(made, group, costs or ()),
        f"<p>{escape(headline(made))}</p>\n{_facts(made, costs or (), group, found)}\n"
        f"<h2>Steps</h2>\n{_steps(made, steps)}\n"
        f'<p class="small"><b>Watch in every step:</b> {escape(watch)}. <b>Stop in every step'
        f" when:</b> {escape(stop)}. <b>When to stop:</b>"
        f" {escape(patience(simulated=costs is not None))}.</p>\n"
        + (
            ""
            if costs is None
            else f"<h2>One simulated run</h2>\n{_charts(made, group, progress)}\n"
        )
        + f"{SIGNATURES}{_conditions_html(found)}"
        + _small("Rehearsals", rehearsals)
        + _small("Not rehearsed", left_out)
        + _small("Not checked", "; ".join(made.not_checked)),
        kind="Rollback" if made.direction is Direction.ROLLBACK else "Upgrade",
    )


def _small(title: str, text: str) -> str:
    """Return a section in small print; nothing without a text."""
    return f'<h2>{title}</h2>\n<p class="small">{escape(text)}</p>\n' if text else ""


def write_plan_report(
    path: Path,
    made: UpgradePlan,
    costs: Sequence[StepCost] | None,
    group: SimulatedGroup,
    progress: Callable[[int], object] = lambda _: None,
) -> None:
    """Write `plan_page` to a file.

    Raises:
        ReportError: the file cannot be written.
    """
    write_html(path, plan_page(made, costs, group, progress))


def _facts(
    made: UpgradePlan,
    costs: Sequence[StepCost],
    group: SimulatedGroup,
    found: Mapping[When, Sequence[Condition]],
) -> str:
    worst = max(
        filter(lambda cost: cost.is_cost, costs),
        key=lambda cost: cost.spread("longest_pause_ms")[1],
        default=None,
    )
    boxes = {when: sum(row.has_box for row in rows) for when, rows in found.items()}
    group_title = "group" if group.is_real else "group, assumed (give --problem or --group)"
    facts = [
        *([(group_title, str(group))] if costs or group.is_real else []),
        ("point of no return", no_return_text(made)),
        *([("the way back", WAY_BACK_IS)] if made.steps[1:] else []),
        *(("state directory", line) for line in state_directory(made, group)),
        *(("all steps", line) for line in (price_of_return(made.steps, costs) if costs else ())),
        ("to do", f"{sum(boxes.values())} boxes, {boxes[When.BEFORE]} of them before you start"),
    ]
    if worst is not None:
        facts.insert(1, ("longest pause of a partition", seconds_text(worst, "longest_pause_ms")))
        facts += [("simulated", simulated_text(worst)), *map(_fact, definitions(made.uses))]
    facts += [("begun", group.begun)] if group.begun else []
    facts += [("assumed", assumption) for assumption in assumptions(made)]
    facts += [("note", note) for note in group.notes]
    facts += [("obstacle", obstacle) for obstacle in made.obstacles]
    facts += other_ways(made, group)
    if made.brokers is not None:
        facts.append((f"brokers {made.brokers.release.name}", str(made.brokers)))
    return facts_html(facts)


def _fact(line: str) -> tuple[str, str]:
    """Return a sentence with its title, which is before its first colon."""
    title, _, text = line.partition(": ")
    return title, text


def _steps(made: UpgradePlan, steps: Sequence[StepSigns]) -> str:
    if not steps:
        return "<p>Nothing to do.</p>"
    rows = []
    for number, signs in enumerate(steps, 1):
        end = '<p class="noreturn">point of no return</p>' if number == made.no_return else ""
        lists = (signs.seen, signs.done, signs.stop, signs.back)
        title = "rehearse: " if signs.rehearsal.is_possible else ""
        rehearsal = f'<p class="small">{title}{text_html(signs.rehearsal.line)}</p>'
        demands = list_html(signs.demands) if signs.demands else ""
        todo = f"{text_html(signs.todo)}{demands}{end}{rehearsal}"
        rows.append((str(number), todo, *map(list_html, lists)))
    heads = (
        ("", 2),
        ("what is done", 21),
        ("what is seen meanwhile", 20),
        ("a member is done when", 17),
        ("when to stop", 12),
        ("how to go back", 28),
    )
    return table_html(heads, rows)


def _conditions(
    made: UpgradePlan, actions: Sequence[tuple[str, str]]
) -> dict[When, list[Condition]]:
    """Return what has to be done or known, by the time at which it is dealt with.

    Args:
        made: the plan.
        actions: what shortens pauses, as from `actions_before`.
    """
    known = [
        *(Condition("protocol", "", text, "", "", is_to_do=True) for text in made.warnings),
        *(Condition("pauses", "", what, setting, "the costs above") for what, setting in actions),
        *(Condition("protocol", "", text, "", "") for text in (*made.windows, *made.bugs)),
    ]
    return {
        when: [
            *(known if when is When.BEFORE else ()),
            *(
                Condition(change.subject, change.label, change.what, change.action, change.source)
                for change in made.changes
                if change.when is when
            ),
        ]
        for when in When
    }


def _conditions_html(found: Mapping[When, Sequence[Condition]]) -> str:
    """Return a table for each time, without those that have no rows but the first."""
    return "".join(
        f"<h2>{when}</h2>\n{conditions_html(rows, NO_GO)}\n"
        for when, rows in found.items()
        if rows or when is When.BEFORE
    )


def pictures_of(made: UpgradePlan) -> tuple[tuple[str, Leg], ...]:
    """Return what is drawn: each bounce of `legs_of`, with its steps as a title."""
    return tuple((_title(made, numbers), leg) for leg, numbers in legs_of(made).items())


def _title(made: UpgradePlan, numbers: Sequence[int]) -> str:
    """Return the steps of a picture, and what they change."""
    first, last = (made.steps[number - 1] for number in (numbers[0], numbers[-1]))
    which = (
        f"step {numbers[0]}" if len(numbers) == 1 else f"steps {' and '.join(map(str, numbers))}"
    )
    if first.old != last.release:
        return f"{which}: {first.old} to {last.release}"
    return f"{which}: {', '.join(last.settings) or 'a bounce'} on {last.release}"


def _story(group: SimulatedGroup, leg: Leg) -> Story:
    outcome = run_bounce(options_of(group, leg, seed=0))
    return with_tasks(story_of_simulation(outcome), group.tasks)


def with_tasks(story: Story, tasks: Sequence[str]) -> Story:
    """Return a story whose partitions have the names of a group's tasks; none: those they have."""
    if not tasks:
        return story
    names = {name: f"task {tasks[int(name.rpartition('-')[2])]}" for name in story.partitions}
    return replace(
        story,
        partitions=tuple(names[name] for name in story.partitions),
        owners=tuple(
            replace(bar, lane=names[bar.lane], hover=bar.hover.replace(bar.lane, names[bar.lane]))
            for bar in story.owners
        ),
    )


def _charts(made: UpgradePlan, group: SimulatedGroup, progress: Callable[[int], object]) -> str:
    """Return a picture of each bounce of the path, with the first seed."""
    keys = "".join(
        f'<span class="key" style="background:{COLOURS[at % len(COLOURS)]}"></span>{escape(stop)}'
        for at, stop in enumerate(made.stops)
    )
    drawn = pictures_of(made)
    stories = run_jobs(
        partial(_story, group),
        [leg for _, leg in drawn],
        size=group.members * group.threads,
        progress=progress,
    )
    pictures = [
        f'<p class="small"><b>{escape(title)}</b></p>\n'
        f'<div class="wide">{chart_svg(story, made.stops)}</div>'
        for (title, _), story in zip(drawn, stories, strict=True)
    ]
    what = "Numbers above the lanes are generations: one for each rebalance, where there is room."
    return f'<p class="small">{what}{keys}</p>\n' + "\n".join(pictures)
