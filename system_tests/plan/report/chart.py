"""A bounce as an SVG picture without scripts: members above, owners of partitions below.

Bars have the colour of the release, in both halves. A label is drawn only where it has room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Final

from system_tests.report import Bar, MarkKind, Rebalance, Story

_WIDTH: Final = 1000
_LEFT: Final = 90
_LANE: Final = 17
_BAR: Final = 13
_TITLE: Final = 16
_CHAR: Final = 5.6  # width of a character of the labels, in px
_MOST_LANES, _MOST_PARTITIONS = 8, 12
_TICKS: Final = 8
_REST_MS, _REST_SHARE = 60_000, 0.15
COLOURS: Final = ("#f0c987", "#a3c4a8", "#8fb8de", "#d7a9d9", "#8fd3d1")
"""Of the releases of a path, in order."""


def chart_svg(story: Story, releases: Sequence[str]) -> str:
    """Return the picture of a bounce.

    Args:
        story: what happened; the keys of its bars and their texts name releases.
        releases: in the order of the path; each has a colour.
    """
    end_ms = _end_ms(story)
    lanes, partitions = story.lanes[:_MOST_LANES], story.partitions[:_MOST_PARTITIONS]
    tops = (_TITLE + _LANE, 2 * _TITLE + (len(lanes) + 1) * _LANE + 6)
    height = tops[1] + len(partitions) * _LANE + 2 * _TITLE
    scale = (_WIDTH - _LEFT - 10) / end_ms
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(releases)}
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(story.title)}">',
        *_rebalances([r for r in story.rebalances if r.at_ms <= end_ms], scale, height),
        _title("members, by the release that they run", len(story.lanes), len(lanes), 12),
        _title(
            "partitions, by their owner and its release; a gap is a pause",
            len(story.partitions),
            len(partitions),
            tops[1] - 5,
        ),
        *_half(_until(story.versions, end_ms), lanes, tops[0], scale, colours),
        *_half(_until(story.owners, end_ms), partitions, tops[1], scale, colours),
        *_axis(end_ms / 1000, scale, height),
        "</svg>",
    ]
    return "\n".join(parts)


def _end_ms(story: Story) -> float:
    """Return when the picture ends: soon after the last start, as copies may warm up for hours."""
    last_ms = max((m.at_ms for m in story.marks if m.kind is MarkKind.STARTS), default=0)
    return max(1, min(story.end_ms, last_ms + max(_REST_MS, last_ms * _REST_SHARE)))


def _until(bars: Sequence[Bar], end_ms: float) -> list[Bar]:
    """Return the bars that begin before a time, cut there."""
    return [
        replace(bar, until_ms=min(bar.until_ms, end_ms)) for bar in bars if bar.from_ms < end_ms
    ]


def _title(text: str, count: int, drawn: int, y: float) -> str:
    some = f" (the first {drawn} of {count})" if drawn < count else ""
    return f'<text class="title" x="0" y="{y}">{escape(text + some)}</text>'


def _half(
    bars: Sequence[Bar],
    lanes: Sequence[str],
    top: float,
    scale: float,
    colours: Mapping[str, str],
) -> list[str]:
    """Return the lanes of one half: their names, and a bar for each period."""
    parts = [
        f'<text class="lane" x="{_LEFT - 6}" y="{top + at * _LANE + 10}">{escape(name)}</text>'
        for at, name in enumerate(lanes)
    ]
    places = {name: at for at, name in enumerate(lanes)}
    for bar in bars:
        if bar.lane not in places:
            continue
        y = top + places[bar.lane] * _LANE
        x, width = _LEFT + bar.from_ms * scale, (bar.until_ms - bar.from_ms) * scale
        colour = next((colours[word] for word in bar.text.split() if word in colours), "#ddd")
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{_BAR}"'
            f' fill="{colour}"><title>{escape(bar.hover)}</title></rect>'
        )
        label = _fitting(bar.text, width)
        if label:
            parts.append(f'<text x="{x + 3:.1f}" y="{y + 10}">{escape(label)}</text>')
    return parts


def _fitting(text: str, width: float) -> str:
    """Return the text, or its first word, or nothing: what has room in a bar."""
    options = (text, text.partition(" ")[0], "")
    return next(option for option in options if len(option) * _CHAR + 6 <= width or not option)


def _rebalances(rebalances: Sequence[Rebalance], scale: float, height: float) -> list[str]:
    """Return a line and the number of each generation to which the one before leaves room."""
    parts, free_from = [], 0.0
    for rebalance in rebalances:
        x, number = _LEFT + rebalance.at_ms * scale, str(rebalance.generation)
        if x - len(number) * _CHAR / 2 < free_from:
            continue
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TITLE + 12}" y2="{height - 2 * _TITLE + 4}">'
            f"<title>{escape(rebalance.hover)}</title></line>"
        )
        parts.append(f'<text class="number" x="{x:.1f}" y="{_TITLE + 10}">{number}</text>')
        free_from = x + len(number) * _CHAR / 2 + 4
    return parts


def _axis(end_s: float, scale: float, height: float) -> list[str]:
    """Return the seconds below the lanes."""
    step = next(
        size
        for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, end_s)
        if end_s / size <= _TICKS
    )
    ticks = [at * step for at in range(int(end_s // step) + 1)]
    places = ((at, _LEFT + at * 1000 * scale) for at in ticks)
    y = height - 12
    return [f'<text class="number" x="{x:.1f}" y="{y}">{at:g} s</text>' for at, x in places]
