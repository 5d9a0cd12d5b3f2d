"""The what-if summary: mean and worst case of each scenario, as a table and an HTML page."""

import importlib.util
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from rich.table import Table

from assignor.cli import print_uncut, text_console

_WIDTH = 120
_MINUTE_MS = 60_000
# Column, label, unit.
_SHOWN = (
    ("handoffs", "hand-offs", ""),
    ("restores", "restores", ""),
    ("restored_records", "records", ""),
    ("outage_ms", "outage", "min"),
    ("converge_ms", "settled", "min"),
    ("rounds", "rounds", ""),
    ("load_max", "load", ""),
    ("active_cross_rack", "cross-rack", ""),
)


def summary_of(frame: DataFrame) -> list[dict[str, Any]]:
    """One row per scenario: cases, groups, mean and worst of each number, and the worst case.

    Args:
        frame: the rows of `whatif.what_if`; the driver gets one row per scenario.
    """
    worst_of = f.max_by(
        f.struct("name", "subject"), f.struct("outage_ms", "converge_ms", "restores")
    )
    columns = [
        part
        for name, _, _ in _SHOWN
        for part in (f.avg(name).alias(f"{name}_mean"), f.max(name).alias(f"{name}_worst"))
    ]
    rows = (
        frame.groupBy("scenario")
        .agg(
            f.count("*").alias("cases"),
            f.count_distinct("name").alias("groups"),
            f.count("error").alias("impossible"),
            f.min("error").alias("why"),
            f.count_if(~f.col("settled")).alias("endless"),
            worst_of.alias("worst"),
            *columns,
        )
        .collect()
    )
    return [
        row.asDict(recursive=True)
        for row in sorted(rows, key=lambda row: (row.scenario != "now", row.scenario))
    ]


def print_summary(rows: list[dict[str, Any]]) -> None:
    """Print the mean and the worst case of each scenario as a table."""
    console = text_console(width=_WIDTH)
    table = Table(box=None, pad_edge=False, title="mean / worst", title_justify="left")
    for name in ("scenario", "cases"):
        table.add_column(
            name,
            justify="left" if name == "scenario" else "right",
            overflow="ellipsis",
            no_wrap=True,
        )
    for _, label, unit in _SHOWN:
        table.add_column(f"{label}, {unit}" if unit else label, justify="right")
    for row in rows:
        cells = [_cell(row, name, unit) for name, _, unit in _SHOWN]
        table.add_row(row["scenario"], str(row["cases"]), *cells)
    print_uncut(table)
    console.print(
        "records: restored in total; outage: until all active tasks run; settled: until no "
        "rebalance is wanted; load: active tasks and copies of the busiest thread"
    )
    for row in rows:
        worst = row["worst"]
        if worst and worst["subject"]:
            console.print(
                f"{row['scenario']}: worst case: {worst['name']}, {worst['subject']}",
                highlight=False,
            )
        if row["impossible"]:
            console.print(
                f"{row['scenario']}: {row['impossible']} of {row['cases']} cases are impossible: "
                f"{row['why']}",
                highlight=False,
            )
        if row["endless"]:
            console.print(f"{row['scenario']}: {row['endless']} never settle", highlight=False)


def _cell(row: dict[str, Any], name: str, unit: str) -> str:
    mean, worst = row[f"{name}_mean"], row[f"{name}_worst"]
    if mean is None:
        return "-"
    scale = _MINUTE_MS if unit == "min" else 1
    return f"{short(mean / scale)} / {short(worst / scale)}"


def short(number: float) -> str:
    """A number in about four characters.

    >>> [short(number) for number in (0.0, 3.14159, 42.4, 1834, 2_460_258_000)]
    ['0', '3.1', '42', '1.8k', '2.5G']
    """
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.{0 if number >= 10 * limit else 1}f}{letter}"
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:.0f}"  # noqa: PLR2004 two digits


def has_plots() -> bool:
    """Whether the extra `report` is installed."""
    return importlib.util.find_spec("plotly") is not None


def page_of(rows: list[dict[str, Any]]) -> str:
    """A self-contained HTML page: a panel for each number, a bar for each scenario."""
    graph = importlib.import_module("plotly.graph_objects")
    panels = importlib.import_module("plotly.subplots")
    titles = [f"{label}, {unit}" if unit else label for _, label, unit in _SHOWN]
    figure = panels.make_subplots(rows=4, cols=2, subplot_titles=titles, vertical_spacing=0.09)
    names = [row["scenario"] for row in rows]
    for number, (name, _, unit) in enumerate(_SHOWN):
        scale = _MINUTE_MS if unit == "min" else 1
        for kind, colour in (("worst", "#c7543a"), ("mean", "#3a6ea5")):
            values = [
                None if row[f"{name}_{kind}"] is None else row[f"{name}_{kind}"] / scale
                for row in rows
            ]
            bar = graph.Bar(
                y=names,
                x=values,
                name=kind,
                orientation="h",
                marker_color=colour,
                legendgroup=kind,
                showlegend=number == 0,
            )
            figure.add_trace(bar, row=number // 2 + 1, col=number % 2 + 1)
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(
        title="What if: each scenario over all groups, mean and worst",
        height=max(900, 4 * (120 + 28 * len(rows))),
        template="plotly_white",
    )
    page: str = figure.to_html(include_plotlyjs=True, full_html=True)
    return page
