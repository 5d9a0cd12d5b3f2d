"""One bounce as one self-contained HTML page: plotly's script inlined, nothing fetched.

Header and trace here, the chart in `figure.py`. The page's own security policy forbids every
request, so that a browser would refuse, and say so, if a later plotly asked for anything.
"""

import os
from html import escape
from pathlib import Path
from typing import Final

from system_tests.report.figure import ReportError, chart_html, load_plotly
from system_tests.report.story import Story

_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem 2rem;color:#1c2429;background:#fff}
h1{font-size:1.4rem;margin:0 0 .4rem}ul{margin:.2rem 0 .6rem;padding-left:1.2rem}
.verdict{color:#fff;border-radius:.3rem;padding:.05rem .6rem;margin-right:.6rem}
.good{background:#2e7d32}.bad{background:#c62828}.how{color:#455a64;margin:.4rem 0}
pre{font:12px/1.45 ui-monospace,monospace;overflow-x:auto;background:#f5f7f8;padding:1rem}
summary{cursor:pointer;font-weight:600}code{background:#f5f7f8;padding:.1rem .3rem}
"""
_HOW: Final = (
    "Above: a lane per member; its colour is the version it writes, a gap is downtime. Below: who"
    " owns each partition; in a gap nobody processes it. Dotted lines are generations. Point at"
    " anything for the rule that fired; drag to zoom, double-click to zoom out; click a legend"
    " entry to hide it."
)


def report_page(story: Story) -> str:
    """Return the page; the same story gives the same bytes.

    Raises:
        ReportError: plotly is not installed.
    """
    verdict = "good" if story.ok else "bad"
    facts = "".join(f"<li>{escape(fact)}</li>" for fact in story.facts)
    trace = escape("\n".join(story.trace))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<link rel="icon" href="data:,"><title>{verdict}: {escape(story.title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n"
        f'<h1><span class="verdict {verdict}">{verdict}</span>'
        f"Rolling bounce {escape(story.title)}</h1>\n"
        f'<ul>{facts}</ul>\n<p class="how">{_HOW}</p>\n'
        "<noscript>The chart needs JavaScript; the trace below does not.</noscript>\n"
        f"{chart_html(story)}\n"
        f"<details><summary>The trace, line by line</summary><pre>{trace}</pre></details>\n"
        f"<p>Again: <code>{escape(story.replay)}</code></p>\n</body></html>\n"
    )


def check_report(path: Path) -> None:
    """Find out before a long experiment whether its report could be written.

    Raises:
        ReportError: plotly is not installed, or there is no writable folder.
    """
    load_plotly()
    target = path if path.exists() else path.absolute().parent
    if not os.access(target, os.W_OK):
        what = "cannot be written to" if target.exists() else "does not exist"
        raise ReportError(f"{target} {what}; choose another file for --report")


def write_report(path: Path, story: Story) -> None:
    """Write the page to a file.

    Raises:
        ReportError: plotly is not installed, or the file cannot be written.
    """
    try:
        path.write_text(report_page(story), encoding="utf-8")
    except OSError as error:
        raise ReportError(f"{error}; choose another file for --report") from error
