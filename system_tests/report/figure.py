"""The chart of a report as SVG: members above, partitions below, on one time axis.

A lane is a row, labelled with its name. Marks are placed within their lane: decisions of a leader
at the upper edge, rejoins of a member at the lower edge. A few lines of script zoom; without it
the chart is complete. Elements carry their times (`data-t`, `data-u`, in ms), which the script
places again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from system_tests.report.story import GROUP, Bar, MarkKind, RebalanceCause, Story

# From the oldest version (sand) to the newest (blue).
_VERSION_COLOURS: Final = ("#f0c987", "#e9a15b", "#a3c4a8", "#63a6a0", "#6f9ec9", "#8aa4d6")
_OWNER_COLOURS: Final = (
    *("#8fb8de", "#f6b48f", "#9fd3a5", "#d7a9d9", "#f3de8a", "#8fd3d1"),
    *("#f2a3b3", "#c5b299", "#b5b9e8", "#cfdc8e", "#d3d3d3", "#a9c7b8"),
)
_CAUSE_COLOURS: Final = {
    RebalanceCause.MEMBERSHIP: "#546e7a",
    RebalanceCause.VERSION: "#1565c0",
    RebalanceCause.FOLLOWUP: "#8e24aa",
    RebalanceCause.REPEATED: "#ef6c00",
    RebalanceCause.EDGE: "#90a4ae",
}


class _Look(NamedTuple):
    """Sign and colour of a kind of mark, and its offset below the middle of the lane."""

    sign: str
    colour: str
    below: float


_LOOKS: Final[Mapping[MarkKind, _Look]] = {
    MarkKind.STARTS: _Look("\N{BLACK RIGHT-POINTING TRIANGLE}", "#2e7d32", 0.0),
    MarkKind.STOPS: _Look("\N{BLACK SQUARE}", "#37474f", 0.0),
    MarkKind.DIES: _Look("\N{MULTIPLICATION SIGN}", "#c62828", 0.0),
    MarkKind.LEADS: _Look("\N{BLACK STAR}", "#212121", -0.34),
    MarkKind.UPGRADES: _Look("\N{BLACK UP-POINTING TRIANGLE}", "#0d47a1", 0.34),
    MarkKind.DOWNGRADES: _Look("\N{BLACK DOWN-POINTING TRIANGLE}", "#d84315", 0.34),
    MarkKind.REJOINS: _Look("\N{WHITE CIRCLE}", "#4e342e", 0.34),
    MarkKind.SETTLED: _Look("\N{BLACK DIAMOND}", "#388e3c", 0.3),
    MarkKind.NOTES: _Look("\N{SIX POINTED BLACK STAR}", "#6a1b9a", -0.3),
    MarkKind.BROKEN: _Look("\N{HEAVY BALLOT X}", "#c62828", 0.0),
}
_REBALANCES: Final = "rebalances"
_WIDTH: Final = 1300
_LEFT: Final = 110
_RIGHT: Final = 20
_LANE_PX: Final = 46
_PARTITION_PX: Final = 24
_TITLE_PX: Final = 28
_TICKS: Final = 10
_STEPS: Final = tuple(size * 10**power for power in range(8) for size in (1, 2, 5))  # ms

_SCRIPT: Final = """
(() => {
const svg = document.getElementById("bounce"), {left, plot, end} = svg.dataset;
const L = +left, W = +plot, axis = svg.querySelector(".axis"), all = [0, +end];
let [a, b] = all, from = null;
const x = t => L + (t - a) / (b - a) * W;
const at = event => {
  const box = svg.getBoundingClientRect();
  const px = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
  return Math.min(all[1], Math.max(0, a + (px - L) / W * (b - a)));
};
function draw() {
  for (const e of svg.querySelectorAll("[data-t]")) {
    const t = +e.dataset.t;
    if (e.dataset.u === undefined) {
      e.style.display = t < a || t > b ? "none" : "";
      e.setAttribute("transform", `translate(${x(t)} ${e.dataset.y})`);
    } else {
      const left = Math.max(x(t), L), right = Math.min(x(+e.dataset.u), L + W);
      e.style.display = right < left ? "none" : "";
      e.setAttribute("x", left);
      e.setAttribute("width", Math.max(right - left, 0.5));
    }
  }
  const about = (b - a) / 10, power = 10 ** Math.floor(Math.log10(about));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= about);
  axis.replaceChildren();
  for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("x", x(t));
    text.textContent = `${+(t / 1000).toPrecision(8)} s`;
    axis.append(text);
  }
}
svg.addEventListener("mousedown", event => { from = at(event); event.preventDefault(); });
addEventListener("mouseup", event => {
  const to = from === null ? null : at(event), start = from;
  from = null;
  if (to !== null && Math.abs(to - start) > (b - a) / 200) {
    [a, b] = [Math.min(start, to), Math.max(start, to)];
    draw();
  }
});
svg.addEventListener("dblclick", () => { [a, b] = all; draw(); });
})();
"""


class ReportError(RuntimeError):
    """A report cannot be made or written; the message says what to do."""


def chart_html(story: Story) -> str:
    """Return the chart with its legend and its script, as a fragment of HTML."""
    group = [GROUP] if any(mark.lane == GROUP for mark in story.marks) else []
    lanes = (_REBALANCES, *group, *story.lanes)
    below = _TITLE_PX + _LANE_PX * len(lanes) + _TITLE_PX
    height = below + _PARTITION_PX * max(len(story.partitions), 1) + 40
    end_ms = max(story.end_ms, 1)
    plot = _WIDTH - _LEFT - _RIGHT
    scale = plot / end_ms
    versions = dict(zip(_ordered(bar.key for bar in story.versions), _shades(story), strict=True))
    owners = {name: _OWNER_COLOURS[at % len(_OWNER_COLOURS)] for at, name in enumerate(story.lanes)}
    box = f'viewBox="0 0 {_WIDTH} {height}" data-left="{_LEFT}" data-plot="{plot}"'
    parts = [
        f'<svg id="bounce" {box} data-end="{end_ms:g}" role="img">',
        _title("Members, by the version they write", _TITLE_PX - 10),
        _title("Partitions, by their owner", below - 8),
        *_names(lanes, _TITLE_PX, _LANE_PX),
        *_names(story.partitions, below, _PARTITION_PX),
        *_lines(story, scale, below + _PARTITION_PX * len(story.partitions)),
        *_bars(story.versions, _Rows(lanes, _TITLE_PX, _LANE_PX, 22), scale, versions),
        *_bars(story.owners, _Rows(story.partitions, below, _PARTITION_PX, 20), scale, owners),
        *_rebalances(story, scale),
        *_marks(story, lanes, scale),
        *_axis(story, scale, height),
        "</svg>",
    ]
    return "\n".join((_legend(story, versions, owners), *parts, f"<script>{_SCRIPT}</script>"))


class _Rows(NamedTuple):
    """Lanes below each other: their names, the top of the first, their height, that of a bar."""

    names: Sequence[str]
    top: int
    height: int
    bar: int


def _ordered(keys: Iterable[str]) -> list[str]:
    """Return the different keys, sorted by number: v2 before v11."""
    return sorted(set(keys), key=lambda key: (len(key), key))


def _shades(story: Story) -> list[str]:
    """Return a colour for each version, from the oldest to the newest."""
    count, last = len({bar.key for bar in story.versions}), len(_VERSION_COLOURS) - 1
    if count <= 1:
        return [_VERSION_COLOURS[last]] * count
    return [_VERSION_COLOURS[number * last // (count - 1)] for number in range(count)]


def _title(text: str, y: float) -> str:
    return f'<text class="title" x="{_LEFT}" y="{y}">{escape(text)}</text>'


def _names(names: Sequence[str], top: int, height: int) -> Iterator[str]:
    for at, name in enumerate(names):
        y = top + at * height + height / 2 + 4
        yield f'<text class="name" x="{_LEFT - 8}" y="{y:g}">{escape(name)}</text>'


def _bars(
    bars: Sequence[Bar], rows: _Rows, scale: float, colours: Mapping[str, str]
) -> Iterator[str]:
    """Yield a bar for each period; its label is cut at its end."""
    places = {name: at for at, name in enumerate(rows.names)}
    for bar in bars:
        y = rows.top + places[bar.lane] * rows.height + (rows.height - rows.bar) / 2
        width = max((bar.until_ms - bar.from_ms) * scale, 0.5)
        hover = f"{bar.hover}\n{bar.from_ms / 1000:.3f} s to {bar.until_ms / 1000:.3f} s"
        yield (
            f'<svg class="bar" data-lane="{escape(bar.lane)}" data-t="{bar.from_ms:g}"'
            f' data-u="{bar.until_ms:g}" x="{_LEFT + bar.from_ms * scale:.1f}" y="{y:g}"'
            f' width="{width:.1f}" height="{rows.bar}"><title>{escape(hover)}</title>'
            f'<rect width="100%" height="100%" fill="{colours.get(bar.key, "#ddd")}"/>'
            f'<text x="8" y="{rows.bar / 2 + 4:g}">{escape(bar.text)}</text></svg>'
        )


def _placed(at_ms: float, y: float, scale: float, inside: str) -> str:
    """Return elements at a time and a height."""
    return (
        f'<g data-t="{at_ms:g}" data-y="{y:g}"'
        f' transform="translate({_LEFT + at_ms * scale:.1f} {y:g})">{inside}</g>'
    )


def _marks(story: Story, lanes: Sequence[str], scale: float) -> Iterator[str]:
    places = {name: at for at, name in enumerate(lanes)}
    for mark in story.marks:
        look = _LOOKS[mark.kind]
        y = _TITLE_PX + (places[mark.lane] + 0.5 + look.below) * _LANE_PX
        hover = escape(f"{mark.at_ms / 1000:.3f} s\n{mark.hover}")
        inside = f'<text class="sign" fill="{look.colour}">{look.sign}<title>{hover}</title></text>'
        yield _placed(mark.at_ms, y, scale, inside)


def _rebalances(story: Story, scale: float) -> Iterator[str]:
    """Yield a numbered mark for each generation, coloured by its cause."""
    y = _TITLE_PX + _LANE_PX / 2
    for rebalance in story.rebalances:
        colour = _CAUSE_COLOURS[rebalance.cause]
        hover = escape(f"{rebalance.at_ms / 1000:.3f} s\n{rebalance.hover}")
        inside = (
            f'<circle r="5" fill="{colour}"><title>{hover}</title></circle>'
            f'<text class="number" y="-8" fill="{colour}">{rebalance.generation}</text>'
        )
        yield _placed(rebalance.at_ms, y, scale, inside)


def _lines(story: Story, scale: float, bottom: int) -> Iterator[str]:
    """Yield a dotted line for each generation, and a red one for each broken rule."""
    times = [(rebalance.at_ms, "generation") for rebalance in story.rebalances]
    times += [(mark.at_ms, "broken") for mark in story.marks if mark.kind is MarkKind.BROKEN]
    for at_ms, kind in times:
        yield _placed(at_ms, 0, scale, f'<line class="{kind}" y1="{_TITLE_PX}" y2="{bottom}"/>')


def _axis(story: Story, scale: float, height: int) -> Iterator[str]:
    end_ms = max(story.end_ms, 1)
    step = next((size for size in _STEPS if end_ms / size <= _TICKS), end_ms)
    yield f'<g class="axis" transform="translate(0 {height - 22})">'
    for number in range(int(end_ms // step) + 1):
        at_ms = number * step
        yield f'<text x="{_LEFT + at_ms * scale:.1f}">{at_ms / 1000:g} s</text>'
    yield "</g>"
    yield f'<text class="axis" x="{_WIDTH / 2:g}" y="{height - 4}">{escape(story.clock)}</text>'


def _legend(story: Story, versions: Mapping[str, str], owners: Mapping[str, str]) -> str:
    """Return what the colours and the signs mean; owners only if their colours differ."""
    rows = [("versions", [(f"writes {key}", "\u25a0", versions[key]) for key in versions])]
    if len(owners) <= len(_OWNER_COLOURS):
        rows.append(("owners", [(name, "\u25a0", owners[name]) for name in owners]))
    kinds = {mark.kind for mark in story.marks}
    rows.append(("events", [(k.value, v.sign, v.colour) for k, v in _LOOKS.items() if k in kinds]))
    causes = [rebalance.cause for rebalance in story.rebalances]
    rows.append(
        (
            _REBALANCES,
            [
                (f"{causes.count(cause)} {cause}", "\N{BLACK CIRCLE}", colour)
                for cause, colour in _CAUSE_COLOURS.items()
                if cause in causes
            ],
        )
    )
    lines = (
        f"<div><b>{title}</b> "
        + " ".join(
            f'<span><i style="color:{colour}">{sign}</i> {escape(text)}</span>'
            for text, sign, colour in entries
        )
        + "</div>"
        for title, entries in rows
        if entries
    )
    return f'<div class="legend">{"".join(lines)}</div>'
