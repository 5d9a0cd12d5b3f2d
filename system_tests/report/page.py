"""The report of a bounce as one self-contained HTML page.

This module makes the header and the trace, `figure.py` the chart. The Content-Security-Policy of
the page forbids every request.
"""

import os
from html import escape
from pathlib import Path
from typing import Final

from system_tests.report.figure import ReportError, chart_html
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
#bounce{width:100%;height:auto;font:11px system-ui,sans-serif;cursor:crosshair}
#bounce .title{font-size:14px;fill:#37474f}#bounce .name{text-anchor:end}
#bounce .sign,#bounce .number,#bounce .axis{text-anchor:middle}
#bounce .sign{font-size:14px;dominant-baseline:central}#bounce .bar text{pointer-events:none}
#bounce line{stroke:#b0bec5;stroke-dasharray:2 3}
#bounce .broken{stroke:#c62828;stroke-dasharray:none}
.legend{font-size:13px}.legend span{margin-right:.8rem;white-space:nowrap}
.legend i{font-style:normal}
summary{cursor:pointer;font-weight:600}code{background:#f5f7f8;padding:.1rem .3rem}
"""
_HOW: Final = (
    "Above: one lane per member; the colour is the version that it writes, a gap is downtime."
    " Below: the owner of each partition; in a gap no member processes it. Dotted lines are"
    " generations. Hover over a mark to see its rule. Drag to zoom, double-click to zoom out."
)


def report_page(story: Story) -> str:
    """Return the page as HTML; deterministic."""
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
        f"{chart_html(story)}\n"
        f"<details><summary>Trace</summary><pre>{trace}</pre></details>\n"
        f"<p>Replay: <code>{escape(story.replay)}</code></p>\n</body></html>\n"
    )


def check_report(path: Path) -> None:
    """Check, before a long experiment, that its report can be written.

    Raises:
        ReportError: the directory is missing or not writable.
    """
    target = path if path.exists() else path.absolute().parent
    if not os.access(target, os.W_OK):
        what = "cannot be written to" if target.exists() else "does not exist"
        raise ReportError(f"{target} {what}; choose another file for --report")


def write_report(path: Path, story: Story) -> None:
    """Write the report to a file.

    Raises:
        ReportError: the file cannot be written.
    """
    try:
        path.write_text(report_page(story), encoding="utf-8")
    except OSError as error:
        raise ReportError(f"{error}; choose another file for --report") from error
