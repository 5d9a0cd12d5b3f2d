"""The parts that the reports of all plans share: one HTML file without scripts or requests."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from encoding import shown
from system_tests.plan.decision import Decision
from system_tests.report import ReportError

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
code{background:#f5f7f8;overflow-wrap:anywhere}.box{white-space:nowrap}
svg{width:100%;height:auto;font:10px system-ui,sans-serif}svg .title{font-size:11px;font-weight:600;
paint-order:stroke;stroke:#fff;stroke-width:4px}
svg .lane{text-anchor:end}svg .number{text-anchor:middle;fill:#455a64}
svg line{stroke:#b0bec5;stroke-dasharray:2 3}
.key{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem;vertical-align:-1px}
.steps{table-layout:fixed}.steps td{overflow-wrap:anywhere}.annex td{overflow-wrap:break-word}
.wide{overflow-x:auto}@media screen and (max-width:900px){.wide>*{min-width:860px}}
.annex{font-size:11.5px}.sign{display:flex;gap:2rem;margin-top:1rem}
.sign div{flex:1;border-top:1px solid #90a4ae}
@media screen and (max-width:700px){.wide>table{min-width:0}tr:first-child{display:none}
:is(tr,th,td){display:block}td[data-head]::before{content:attr(data-head);display:block;
font-weight:600}td:empty{display:none}}
@media print{@page{margin:12mm}body{margin:0;padding:0;max-width:none;font-size:9px;line-height:1.3}
.annex,.small{font-size:8px}h1{font-size:13px}h2{font-size:11px;margin:.6rem 0 .2rem}
tr,svg{break-inside:avoid}}
"""


_OPTION: Final = re.compile(r"--[a-z][a-z-]*[a-z]")
_COMMAND: Final = re.compile(
    r"((?:assignor|rolling-bounce|kafka-[a-z-]+\.sh) (?:[a-z]+ ){0,2}--.*?(?=[:;,] |\)|$))"
)


_CONDITION_HEADS: Final = ("about", "release", "what", "what to do", "source")


class Condition(NamedTuple):
    """A row of the table of what has to be done or known: about what, since which release, what.

    `is_to_do`: it has a box to tick, also without an action.
    """

    about: str
    release: str
    what: str
    action: str
    source: str
    is_to_do: bool = False

    @property
    def has_box(self) -> bool:
        """Whether it has a box to tick."""
        return bool(self.action) or self.is_to_do


def page_html(title: str, decision: Decision, body: str, *, kind: str = "Upgrade") -> str:
    """Return the page; `title` and the decision are escaped here, `body` and `kind` are HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}: {escape(decision.words)}</title>'
        f"<style>{_STYLE}</style></head><body>\n"
        f'<h1><span class="verdict {decision.colour}">{escape(decision.words)}</span>'
        f"{kind} of Kafka Streams, {escape(title)}</h1>\n{body}</body></html>\n"
    )


SIGNATURES: Final = (
    '<div class="sign"><div>go / no go</div><div>decided by, date</div>'
    "<div>on call, from &ndash; until</div></div>\n"
)


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    """Return named facts, side by side."""
    cells = "".join(f"<span><b>{name}:</b> {text_html(text)}</span>" for name, text in facts)
    return f'<div class="facts">{cells}</div>'


def list_html(lines: Iterable[str]) -> str:
    """Return sentences as a list."""
    return "<ul>" + "".join(f"<li>{text_html(line)}</li>" for line in lines) + "</ul>"


def text_html(text: str) -> str:
    """Return a sentence; commands are set as such, up to ": ", "; ", ", ", ")" or the end.

    A line may break behind the = of a setting, not within an option.
    """
    parts = _COMMAND.split(text)
    return "".join(
        f"<code>{_broken(part)}</code>" if number % 2 else _broken(part)
        for number, part in enumerate(parts)
    )


def _broken(text: str) -> str:
    """Return a text with the places where a line may break."""
    whole = _OPTION.sub(lambda found: f'<span class="box">{found[0]}</span>', escape(text))
    return whole.replace("=", "=<wbr>").replace("<span class=<wbr>", "<span class=")


def table_html(heads: Sequence[tuple[str, int]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table: heads with their widths in percent, and the cells of each row as HTML.

    The first cell is a number. On a narrow screen each cell is a block under its head.
    """
    names = [name for name, _ in heads[1:]]
    body = "".join(f"<tr><th>{number}</th>{_cells(names, cells)}</tr>" for number, *cells in rows)
    head = "".join(f'<th style="width:{width}%">{name}</th>' for name, width in heads)
    table = f'<table class="steps"><tr>{head}</tr>{body}</table>'
    return f'<div class="wide">{table}</div>'


def _cells(names: Iterable[str], cells: Iterable[str]) -> str:
    """Return the cells of a row, each with the head that a narrow screen shows above it."""
    return "".join(
        f"<td>{cell}</td>" if not cell else f'<td data-head="{name}">{cell}</td>'
        for name, cell in zip(names, cells, strict=True)
    )


def conditions_html(found: Sequence[Condition], fatal: str) -> str:
    """Return conditions as a table: those with an action, with a box to tick, come first.

    Args:
        found: the conditions.
        fatal: what a condition begins with that is printed in red.
    """
    if not found:
        return "<p>Nothing is known.</p>"
    todo = [condition for condition in found if condition.has_box]
    rest = [condition for condition in found if condition not in todo]
    head = "".join(f"<th>{name}</th>" for name in ("", *_CONDITION_HEADS))
    body = "".join(_condition(condition, fatal) for condition in (*todo, *rest))
    return f'<div class="wide"><table class="annex"><tr>{head}</tr>{body}</table></div>'


def _condition(condition: Condition, fatal: str) -> str:
    *texts, _ = condition
    box = "&#9744;" if condition.has_box else ""
    cells = _cells(_CONDITION_HEADS, map(text_html, texts))
    kind = ' class="fatal"' if condition.what.startswith(fatal) else ""
    return f'<tr{kind}><td class="box">{box}</td>{cells}</tr>'


def write_note_report(
    path: Path, verdict: str, colour: str, lines: Iterable[str], *, group: str
) -> None:
    """Write a page that only says why a group has no plan, or needs none.

    Raises:
        ReportError: the file cannot be written.
    """
    title = f"group {shown(group, limit=None)}"
    write_html(path, page_html(title, Decision(verdict, colour), list_html(map(shown, lines))))


def write_html(path: Path, page: str) -> None:
    """Write a page to a file.

    Raises:
        ReportError: the file cannot be written.
    """
    try:
        # A name may have half a surrogate pair, which UTF-8 cannot encode.
        path.write_bytes(page.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise ReportError(f"{error}; choose another file for --report") from error
