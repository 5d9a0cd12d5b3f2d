"""The page: decision, conditions, steps and a simulated bounce, in one HTML file without scripts.

Everything on it is in the plan or in the costs. The Content-Security-Policy forbids every request.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from system_tests.plan.cost import StepCost
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.notes import FATAL
from system_tests.plan.report.chart import COLOURS, chart_svg
from system_tests.plan.report.signs import StepSigns, always, signs_of
from system_tests.plan.steps import UpgradePlan
from system_tests.plan.text import assumptions, headline, seconds_text
from system_tests.plan.workers import run_jobs
from system_tests.report import ReportError, Story, story_of_simulation
from system_tests.sim import run_bounce

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE: Final = """
body{font:13px/1.4 system-ui,sans-serif;margin:1.2rem auto;max-width:1100px;padding:0 1rem;
color:#1c2429;background:#fff}
h1{font-size:1.35rem;margin:0 0 .3rem}h2{font-size:1rem;margin:1rem 0 .3rem}
.verdict{color:#fff;border-radius:.3rem;padding:.1rem .6rem;margin-right:.6rem}
.go{background:#2e7d32}.check{background:#8a5300}.stop{background:#c62828}
table{border-collapse:collapse;width:100%}th,td{border:1px solid #cfd8dc;padding:.25rem .4rem;
text-align:left;vertical-align:top}th{background:#f5f7f8}td ul{margin:0;padding-left:1rem}
.facts{display:flex;flex-wrap:wrap;gap:.3rem 1.6rem;margin:.3rem 0}.facts b{font-weight:600}
.fatal,.noreturn{color:#b71c1c;font-weight:600}.small{color:#455a64;font-size:12px}
code{background:#f5f7f8;padding:0 .2rem;overflow-wrap:anywhere}.box{white-space:nowrap}
svg{width:100%;height:auto;font:10px system-ui,sans-serif}svg .title{font-size:11px;font-weight:600;
paint-order:stroke;stroke:#fff;stroke-width:4px}
svg .lane{text-anchor:end}svg .number{text-anchor:middle;fill:#455a64}
svg line{stroke:#b0bec5;stroke-dasharray:2 3}
.key{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem;vertical-align:-1px}
.annex{font-size:11.5px}.sign{display:flex;gap:2rem;margin-top:1rem}
.sign div{flex:1;border-top:1px solid #90a4ae}
@media print{body{margin:0;font-size:10px}tr,svg{break-inside:avoid}}
"""


def plan_page(
    made: UpgradePlan,
    costs: Sequence[StepCost],
    group: SimulatedGroup,
    progress: Callable[[int], object] = lambda _: None,
) -> str:
    """Return the page as HTML; deterministic.

    Args:
        made: the plan.
        costs: of its steps, in order.
        group: that they are simulated with.
        progress: as of `run_jobs`; `pictures_of` tells how many bounces are simulated.
    """
    decision, colour = _decision(made, group)
    steps = [signs_of(step, cost, group) for step, cost in zip(made.steps, costs, strict=True)]
    title = f"{made.old} to {made.new}" + (f", group {group.name}" if group.name else "")
    watch, stop = always(group)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}: {decision}</title>'
        f"<style>{_STYLE}</style></head><body>\n"
        f'<h1><span class="verdict {colour}">{decision}</span>'
        f"Upgrade of Kafka Streams, {escape(title)}</h1>\n"
        f"<p>{escape(headline(made))}</p>\n{_facts(made, costs, group)}\n"
        f"<h2>Steps</h2>\n{_steps(made, steps)}\n"
        f'<p class="small"><b>Watch in every step:</b> {escape(watch)}. <b>Stop in every step'
        f" when:</b> {escape(stop)}.</p>\n"
        f"<h2>One simulated run</h2>\n{_charts(made, group, progress)}\n{_SIGNATURES}"
        f"<h2>Before you start</h2>\n{_conditions(made)}\n"
        f'<h2>Not checked</h2>\n<p class="small">{escape("; ".join(made.not_checked))}</p>\n'
        "</body></html>\n"
    )


def _decision(made: UpgradePlan, group: SimulatedGroup) -> tuple[str, str]:
    """Return the decision that the plan supports, and its CSS class."""
    if not made.rolling:
        return "no go as a rolling upgrade", "stop"
    if any(warning.startswith(FATAL) for warning in made.warnings):
        return "no go: members can die", "stop"
    if made.steps and (made.no_return is not None or not group.is_real):
        return "go, if the points below are met", "check"
    has_conditions = bool(made.warnings or made.changes or made.bugs)
    return ("go, if the points below are met" if has_conditions else "go"), "go"


_SIGNATURES: Final = (
    '<div class="sign"><div>go / no go</div><div>decided by, date</div>'
    "<div>on call, from &ndash; until</div></div>\n"
)


def write_plan_report(
    path: Path,
    made: UpgradePlan,
    costs: Sequence[StepCost],
    group: SimulatedGroup,
    progress: Callable[[int], object] = lambda _: None,
) -> None:
    """Write `plan_page` to a file.

    Raises:
        ReportError: the file cannot be written.
    """
    try:
        path.write_text(plan_page(made, costs, group, progress), encoding="utf-8")
    except OSError as error:
        raise ReportError(f"{error}; choose another file for --report") from error


def _facts(made: UpgradePlan, costs: Sequence[StepCost], group: SimulatedGroup) -> str:
    worst = max(costs, key=lambda cost: cost.spread("longest_pause_ms")[1], default=None)
    back = "none on this path" if made.no_return is None else f"step {made.no_return}"
    facts = [
        ("group" if group.is_real else "group, assumed (give --problem or --group)", str(group)),
        ("point of no return", back),
        ("to check before", f"{len(made.warnings) + len(made.changes)} points"),
    ]
    if worst is not None:
        facts.insert(1, ("longest pause of a partition", seconds_text(worst, "longest_pause_ms")))
        facts.append(("simulated", f"{len(worst.runs)} bounces; in brackets: 5 % to 95 %"))
    facts += [("assumed", assumption) for assumption in assumptions(made)]
    facts += [("note", note) for note in group.notes]
    facts += [("obstacle", obstacle) for obstacle in made.obstacles]
    cells = "".join(f"<span><b>{name}:</b> {escape(text)}</span>" for name, text in facts)
    return f'<div class="facts">{cells}</div>'


def _steps(made: UpgradePlan, steps: Sequence[StepSigns]) -> str:
    if not steps:
        return "<p>Nothing to do.</p>"
    rows = []
    for number, signs in enumerate(steps, 1):
        end = '<p class="noreturn">point of no return</p>' if number == made.no_return else ""
        cells = "".join(f"<td>{_list(lines)}</td>" for lines in (signs.seen, signs.watch))
        rows.append(
            f"<tr><th>{number}</th><td>{escape(signs.todo)}{end}</td>{cells}"
            f"<td>{_list(signs.stop)}</td><td>{_list(signs.back)}</td></tr>"
        )
    heads = (
        ("", 2),
        ("what is done", 18),
        ("what is seen", 25),
        ("what to watch", 16),
        ("when to stop", 12),
        ("how to go back", 27),
    )
    head = "".join(f'<th style="width:{width}%">{name}</th>' for name, width in heads)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_line(line)}</li>" for line in lines) + "</ul>"


def _line(line: str) -> str:
    is_command = line.startswith(("assignor ", "rolling-bounce "))
    return f"<code>{escape(line)}</code>" if is_command else escape(line)


def _conditions(made: UpgradePlan) -> str:
    """Return what has to be done first, with a box to tick, then what has to be known."""
    ordered = sorted(made.warnings, key=lambda warning: not warning.startswith(FATAL))
    known = [
        Condition("protocol", "", text, "", "") for text in (*ordered, *made.windows, *made.bugs)
    ]
    known += [Condition(c.subject, c.release, c.what, c.action, c.source) for c in made.changes]
    todo = [condition for condition in known if condition.action]
    rest = [condition for condition in known if not condition.action]
    if not known:
        return "<p>Nothing is known that has to be checked.</p>"
    heads = ("", "about", "release", "what", "what to do", "source")
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(_condition(condition) for condition in (*todo, *rest))
    return f'<table class="annex"><tr>{head}</tr>{body}</table>'


class Condition(NamedTuple):
    """A row of the table of what has to be done or known before."""

    about: str
    release: str
    what: str
    action: str
    source: str


def _condition(condition: Condition) -> str:
    box = "&#9744;" if condition.action else ""
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in condition)
    kind = ' class="fatal"' if condition.what.startswith(FATAL) else ""
    return f'<tr{kind}><td class="box">{box}</td>{cells}</tr>'


def pictures_of(made: UpgradePlan) -> tuple[tuple[str, str], ...]:
    """Return the releases of each leg of the path; a picture of each is drawn."""
    return tuple(pairwise(made.stops)) if made.steps else ()


def _story(group: SimulatedGroup, leg: tuple[str, str, bool]) -> Story:
    old, new, offline = leg
    return story_of_simulation(run_bounce(group.options(seed=0, old=old, new=new, offline=offline)))


def _charts(made: UpgradePlan, group: SimulatedGroup, progress: Callable[[int], object]) -> str:
    """Return a picture of each leg of the path, with the first seed."""
    keys = "".join(
        f'<span class="key" style="background:{COLOURS[at % len(COLOURS)]}"></span>{escape(stop)}'
        for at, stop in enumerate(made.stops)
    )
    legs = [(old, new, not made.rolling) for old, new in pictures_of(made)]
    stories = run_jobs(
        partial(_story, group), legs, size=group.members * group.threads, progress=progress
    )
    pictures = [chart_svg(story, made.stops) for story in stories]
    what = "Numbers above the lanes are generations: one for each rebalance, where there is room."
    return f'<p class="small">{what}{keys}</p>\n' + "\n".join(pictures)
