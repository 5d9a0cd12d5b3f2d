"""The part of `assignor inspect` about a rolling change of the topology."""

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from assignor.cli.inspect.columns import plain_table
from assignor.cli.toolkit.text import TextTable, line
from assignor.inspection import FamilyLook, FormLook, GroupInspection, TopologiesLook, few

FAMILIES_SHOWN = 50


def topology_versions(look: TopologiesLook, names: Mapping[str, str]) -> str:
    """Return which clients have which version of the topology."""
    return "; ".join(
        f"version {version} on {few([names[process] for process in processes])}"
        for version, processes in look.processes.items()
    )


def topology_change(look: GroupInspection, names: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield a table of the subtopologies that change, and why each runs as it does.

    Args:
        look: the group.
        names: display name of each process.
    """
    families = [] if look.topologies is None else look.topologies.families
    changing = [family for family in families if family.is_changing]
    if not changing:
        return
    yield Text()
    yield _table(changing[:FAMILIES_SHOWN], names)
    for family in changing[:FAMILIES_SHOWN]:
        yield line(f"{_reads(family.forms[0])}: {family.why}", "dim")
    if len(changing) > FAMILIES_SHOWN:
        left = len(changing) - FAMILIES_SHOWN
        yield Text(f"{left} more are not shown; --format json lists all", style="dim")


def _table(families: list[FamilyLook], names: Mapping[str, str]) -> TextTable:
    table = plain_table("reads", "version", "runs on", "can run it", "partitions")
    for family in families:
        for form in family.forms:
            running = ", ".join(
                f"{names[process]}: {len(held)}" for process, held in form.running.items()
            )
            table.add_row(
                line(_label(form, family)),
                ", ".join(map(str, form.versions)) or "?",
                line(running or "no client"),
                line(few([names[process] for process in form.carriers]) or "no client"),
                "move to this form" if form.wanted else "stay until they move",
            )
    return table


def _label(form: FormLook, family: FamilyLook) -> str:
    """Sources; with the content, if another form has the same sources in the same versions."""
    twins = [f for f in family.forms if (f.sources, f.versions) == (form.sources, form.versions)]
    return _reads(form) if len(twins) == 1 else f"{_reads(form)} ({form.fingerprint[:8]})"


def _reads(form: FormLook) -> str:
    return ", ".join(form.sources) or f"content {form.fingerprint}"
