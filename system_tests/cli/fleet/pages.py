"""The directory of reports of ``plan --all``: one page for each group, named by the group."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from assignor.inspection import few
from system_tests.cli.fleet.group_plan import GroupPlan
from system_tests.cli.options import EXIT_ENVIRONMENT, refuse
from system_tests.cli.planned_group import refuse_report_over_problem
from system_tests.plan.report import write_move_report, write_note_report, write_plan_report
from system_tests.report import ReportError, check_report

_PLAIN: Final = re.compile(r"[a-z0-9_][a-z0-9._-]{0,99}", re.ASCII)
_QUOTED_MAX: Final = 100


def page_name(group: str) -> str:
    """Return the file name of a group's page, the same in each run, and another for each group.

    Names with other than lower-case letters, digits and `._-` get a part of their hash: a file
    system may take `Orders` and `orders` for the same name.

    >>> page_name("orders"), page_name("a/b")
    ('orders.html', 'a%2Fb-c14cddc0.html')
    """
    if _PLAIN.fullmatch(group):
        return f"{group}.html"
    digest = hashlib.sha256(group.encode()).hexdigest()[:8]
    return f"{quote(group, safe='')[:_QUOTED_MAX]}-{digest}.html"


def check_directory(directory: Path) -> None:
    """Make the directory of the reports, and check that a file can be written there."""
    try:
        directory.mkdir(exist_ok=True)
        check_report(directory / "plan.html")
    except (OSError, ReportError) as error:
        refuse(
            f"--all writes one report for each group: --report {directory}: {error}",
            EXIT_ENVIRONMENT,
        )


def check_pages(directory: Path, groups: Iterable[str], given: Mapping[str, Any]) -> None:
    """Refuse a directory with pages that this run does not write: those of former runs are stale.

    Args:
        directory: of the reports.
        groups: that are planned.
        given: the options; no page may be the file that they name.
    """
    names = {page_name(group) for group in groups}
    for name in sorted(names):
        refuse_report_over_problem({**given, "report": directory / name})
        if (directory / name).is_symlink():
            refuse(f"--report {directory}: {name} is a link, to a file that --problem may name too")
    others = sorted(path.name for path in directory.glob("*.html") if path.name not in names)
    if others:
        refuse(
            f"--report {directory} has pages of none of these groups: {few(others)}; they would be"
            " read as pages of this run: move them away, or give another directory"
        )


def write_page(directory: Path, plan: GroupPlan) -> None:
    """Write the page of a group, also of one that has no plan: a former page is overwritten."""
    file = directory / page_name(plan.name)
    try:
        if plan.made is not None:
            write_plan_report(file, plan.made, plan.costs, plan.group)
        elif plan.move is not None:
            write_move_report(file, plan.move, group=plan.name)
        else:
            lines = (plan.problem or plan.verdict,)
            colour = "stop" if plan.is_red else "go"
            write_note_report(file, plan.verdict, colour, lines, group=plan.name)
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
