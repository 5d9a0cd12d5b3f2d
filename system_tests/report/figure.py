"""The chart of a report, drawn by plotly: members above, partitions below, on one time axis.

A lane is a number on the y axis, labelled with its name. Marks are placed within their lane:
decisions of a leader at the upper edge, rejoins of a member at the lower edge.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import ModuleType
from typing import Any, Final, NamedTuple

from assignor.cli.toolkit import missing_extra
from system_tests.report.story import GROUP, Bar, Mark, MarkKind, RebalanceCause, Story

# From the oldest version (sand) to the newest (blue).
_VERSION_COLOURS: Final = ("#f0c987", "#e9a15b", "#a3c4a8", "#63a6a0", "#4a7fb0", "#3b5b92")
_OWNER_COLOURS: Final = (
    *("#8fb8de", "#f6b48f", "#9fd3a5", "#d7a9d9", "#f3de8a", "#8fd3d1"),
    *("#f2a3b3", "#c5b299", "#b5b9e8", "#cfdc8e", "#d3d3d3", "#a9c7b8"),
)
_CAUSE_COLOURS: Final = {
    RebalanceCause.MEMBERSHIP: "#546e7a",
    RebalanceCause.VERSION: "#1565c0",
    RebalanceCause.FOLLOWUP: "#8e24aa",
    RebalanceCause.REPEATED: "#ef6c00",
    RebalanceCause.EDGE: "#b0bec5",
}


class _Look(NamedTuple):
    """Symbol and colour of a kind of mark, and its offset below the middle of the lane."""

    symbol: str
    colour: str
    below: float


_LOOKS: Final[Mapping[MarkKind, _Look]] = {
    MarkKind.STARTS: _Look("triangle-right", "#2e7d32", 0.0),
    MarkKind.STOPS: _Look("square", "#37474f", 0.0),
    MarkKind.DIES: _Look("x", "#c62828", 0.0),
    MarkKind.LEADS: _Look("star", "#212121", -0.3),
    MarkKind.UPGRADES: _Look("triangle-up", "#0d47a1", 0.3),
    MarkKind.DOWNGRADES: _Look("triangle-down", "#d84315", 0.3),
    MarkKind.REJOINS: _Look("circle-open", "#4e342e", 0.3),
    MarkKind.SETTLED: _Look("diamond", "#66bb6a", 0.25),
    MarkKind.NOTES: _Look("hexagram", "#6a1b9a", -0.25),
    MarkKind.BROKEN: _Look("x-thin-open", "#c62828", 0.0),
}
_REBALANCES: Final = "rebalances"
_LANE_PX: Final = 46
_PARTITION_PX: Final = 26
_AROUND_PX: Final = 190
_MAX_HEIGHT_PX: Final = 6000
_MARGIN: Final = 0.02
_HOVER_COLUMNS: Final = 80
_MARK_PX: Final = 10
_MAX_LINES: Final = 400


_CONFIG: Final = {
    "displaylogo": False,
    "responsive": True,
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": ["select2d", "lasso2d"],
}


class ReportError(RuntimeError):
    """A report cannot be made or written; the message says what to do."""


def load_plotly() -> tuple[ModuleType, ModuleType]:
    """Import plotly, an optional dependency.

    Raises:
        ReportError: plotly is not installed.
    """
    try:
        import plotly.graph_objects as graphs  # noqa: PLC0415 an extra, loaded when asked for
        from plotly import subplots  # noqa: PLC0415 likewise
    except ImportError as error:
        raise ReportError(f"no report can be drawn: {missing_extra(error) or error}") from error
    return graphs, subplots


def chart_html(story: Story) -> str:
    """Return the chart as a fragment of HTML that contains plotly's script.

    Raises:
        ReportError: plotly is not installed.
    """
    graphs, subplots = load_plotly()
    group = [GROUP] if any(mark.lane == GROUP for mark in story.marks) else []
    lanes = (_REBALANCES, *group, *story.lanes)
    heights = (_LANE_PX * len(lanes), _PARTITION_PX * max(len(story.partitions), 1))
    figure = subplots.make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=heights, vertical_spacing=_gap(heights)
    )
    _add_versions(graphs, figure, story, _places(lanes))
    _add_marks(graphs, figure, story.marks, _places(lanes))
    _add_rebalances(graphs, figure, story)
    _add_owners(graphs, figure, story, _places(story.partitions))
    _add_lines(figure, story)
    _lay_out(figure, story, lanes, heights)
    html: str = figure.to_html(
        include_plotlyjs=True,
        full_html=False,
        div_id="bounce",  # fixed: plotly's default is random
        config=_CONFIG,
    )
    return html


def _gap(heights: tuple[int, int]) -> float:
    """Return the space for a line of title between the two charts, as a share of the height."""
    return min(0.2, 40 / sum(heights))


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


def _ordered(keys: Iterable[str]) -> list[str]:
    """Return the different keys, sorted by number: v2 before v11."""
    return sorted(set(keys), key=lambda key: (len(key), key))


def _shades(count: int) -> list[str]:
    """Return this many colours, from the oldest version to the newest."""
    last = len(_VERSION_COLOURS) - 1
    if count <= 1:
        return [_VERSION_COLOURS[last]] * count
    return [_VERSION_COLOURS[number * last // (count - 1)] for number in range(count)]


def _add_versions(graphs: ModuleType, figure: Any, story: Story, places: Mapping[str, int]) -> None:
    keys = _ordered(bar.key for bar in story.versions)
    for key, colour in zip(keys, _shades(len(keys)), strict=True):
        bars = [bar for bar in story.versions if bar.key == key]
        drawn = _bars(graphs, bars, places, colour=colour, name=f"writes {key}", thick=0.56)
        drawn.update(legendgroup="versions", legendgrouptitle={"text": "versions"})
        figure.add_trace(drawn, row=1, col=1)


def _add_owners(graphs: ModuleType, figure: Any, story: Story, places: Mapping[str, int]) -> None:
    """Add bars of owners, a colour each; with more owners than colours, without a legend."""
    owners = [name for name in story.lanes if any(bar.key == name for bar in story.owners)]
    colour_of = {name: i % len(_OWNER_COLOURS) for i, name in enumerate(owners)}
    for number in sorted(set(colour_of.values())):
        names = [name for name in owners if colour_of[name] == number]
        bars = [bar for bar in story.owners if colour_of.get(bar.key) == number]
        colour = _OWNER_COLOURS[number]
        drawn = _bars(graphs, bars, places, colour=colour, name=names[0], thick=0.84)
        drawn.update(
            legendgroup="owners",
            legendgrouptitle={"text": "owners"},
            showlegend=len(owners) <= len(_OWNER_COLOURS),
            opacity=0.9,  # overlapping bars (two owners at a time) stay visible
        )
        figure.add_trace(drawn, row=2, col=1)


def _bars(
    graphs: ModuleType,
    bars: Sequence[Bar],
    places: Mapping[str, int],
    *,
    colour: str,
    name: str,
    thick: float,
) -> Any:
    return graphs.Bar(
        orientation="h",
        y=[places[bar.lane] for bar in bars],
        x=[(bar.until_ms - bar.from_ms) / 1000 for bar in bars],
        base=[bar.from_ms / 1000 for bar in bars],
        width=thick,
        name=escape(name),
        text=[escape(bar.text) for bar in bars],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        marker={"color": colour, "line": {"color": "#fff", "width": 1}},
        customdata=[
            f"{_wrapped(bar.hover)}<br>{bar.from_ms / 1000:.3f} s to {bar.until_ms / 1000:.3f} s"
            for bar in bars
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _wrapped(text: str) -> str:
    """Return a sentence as escaped HTML, wrapped for a tooltip."""
    lines = (line for part in text.split("\n") for line in textwrap.wrap(part, _HOVER_COLUMNS))
    return "<br>".join(escape(line) for line in lines)


def _add_marks(
    graphs: ModuleType, figure: Any, marks: Sequence[Mark], places: Mapping[str, int]
) -> None:
    for kind, look in _LOOKS.items():
        shown = [mark for mark in marks if mark.kind is kind]
        if not shown:
            continue
        drawn = graphs.Scatter(
            mode="markers",
            x=[mark.at_ms / 1000 for mark in shown],
            y=[places[mark.lane] + look.below for mark in shown],
            name=kind.value,
            legendgroup="events",
            legendgrouptitle={"text": "events"},
            marker={
                "symbol": look.symbol,
                "color": look.colour,
                "size": _MARK_PX + 5 * (kind is MarkKind.BROKEN),
                "line": {
                    "color": look.colour if "open" in look.symbol else "#fff",
                    "width": 2 if "open" in look.symbol else 1,
                },
            },
            customdata=[f"{mark.at_ms / 1000:.3f} s<br>{_wrapped(mark.hover)}" for mark in shown],
            hovertemplate="%{customdata}<extra></extra>",
            cliponaxis=False,
        )
        figure.add_trace(drawn, row=1, col=1)


def _add_rebalances(graphs: ModuleType, figure: Any, story: Story) -> None:
    """Add a numbered mark for each generation, in a separate lane, coloured by its cause."""
    for cause, colour in _CAUSE_COLOURS.items():
        rebalances = [rebalance for rebalance in story.rebalances if rebalance.cause is cause]
        if not rebalances:
            continue
        drawn = graphs.Scatter(
            mode="markers+text",
            x=[rebalance.at_ms / 1000 for rebalance in rebalances],
            y=[0] * len(rebalances),
            text=[str(rebalance.generation) for rebalance in rebalances],
            textposition="top center",
            textfont={"size": 11, "color": colour},
            name=f"{len(rebalances)} {cause}",
            legendgroup="rebalances",
            legendgrouptitle={"text": "rebalances"},
            marker={"symbol": "circle", "size": _MARK_PX, "color": colour},
            customdata=[
                f"{rebalance.at_ms / 1000:.3f} s<br>{_wrapped(rebalance.hover)}"
                for rebalance in rebalances
            ],
            hovertemplate="%{customdata}<extra></extra>",
            cliponaxis=False,
        )
        figure.add_trace(drawn, row=1, col=1)


def _add_lines(figure: Any, story: Story) -> None:
    """Add a dotted line for each generation, and a red one for each broken rule."""
    lines = [(rebalance.at_ms, "#b0bec5", "dot") for rebalance in story.rebalances[:_MAX_LINES]]
    broken = [mark.at_ms for mark in story.marks if mark.kind is MarkKind.BROKEN]
    lines += [(at_ms, "#c62828", "solid") for at_ms in broken[:_MAX_LINES]]
    shapes = [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": at_ms / 1000,
            "x1": at_ms / 1000,
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"color": colour, "width": 1, "dash": dash},
        }
        for at_ms, colour, dash in lines
    ]
    figure.update_layout(shapes=shapes)


def _lay_out(figure: Any, story: Story, lanes: Sequence[str], heights: tuple[int, int]) -> None:
    figure.update_layout(
        barmode="overlay",
        template="plotly_white",
        height=min(_AROUND_PX + sum(heights), _MAX_HEIGHT_PX),
        margin={"l": 90, "r": 20, "t": 40, "b": 50},
        legend={"groupclick": "toggleitem", "tracegroupgap": 10},
        hoverlabel={"align": "left"},
        uniformtext={"minsize": 11, "mode": "hide"},
        hovermode="closest",
    )
    titles = ("Members, by the version they write", "Partitions, by their owner")
    for row, names in ((1, lanes), (2, story.partitions)):
        figure.update_yaxes(
            tickmode="array",
            tickvals=list(range(len(names))),
            ticktext=[escape(name) for name in names],
            range=[len(names) - 0.5, -0.65],
            showgrid=False,
            zeroline=False,
            row=row,
            col=1,
        )
        figure.add_annotation(
            text=titles[row - 1],
            showarrow=False,
            x=0,
            xref="paper",
            xanchor="left",
            y=1,
            yref=f"y{'' if row == 1 else row} domain",
            yanchor="bottom",
            font={"size": 14, "color": "#37474f"},
        )
    end_s = max(story.end_ms, 1) / 1000
    figure.update_xaxes(range=[-_MARGIN * end_s, (1 + _MARGIN) * end_s])
    figure.update_xaxes(title=escape(story.clock), row=2, col=1)
