"""How feature levels are told: tables and sentences for people, objects for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from assignor.cli.toolkit.exit_status import warn
from assignor.cli.toolkit.text import print_line, print_table
from assignor.levels import Described, Need, Survey, Told, level_text, lossy_text
from probing.features import FeatureTable

_HEAD = ("feature", "supported", "finalized")


def described_text(described: Described) -> None:
    """Print what is agreed and what is supported."""
    rows = []
    for name in described.features:
        found = described.supported.get(name)
        supported = "-"
        if found is not None:
            low = 0 if found.can_be_off else found.min
            ends = (level_text(described.table, name, level) for level in (low, found.max))
            supported = " to ".join(ends)
        level = described.finalized.level_of(name)
        finalized = level_text(described.table, name, level) if level else "-"
        if (minimum := described.minimums.get(name, 0)) > 0:
            finalized += f", not below {level_text(described.table, name, minimum)}"
        rows.append((name, supported, finalized))
    print_table(_HEAD, rows)
    epoch = described.finalized.epoch
    known = "no epoch known" if epoch < 0 else f"epoch {epoch}"
    print_line(f"{known}, told by {described.source}")
    for note in described.notes:
        warn(note)


def described_json(described: Described) -> dict[str, Any]:
    """Return what is agreed and what is supported as an object."""
    features: dict[str, Any] = {}
    for name in described.features:
        found = described.supported.get(name)
        level = described.finalized.level_of(name)
        features[name] = {
            "supported": None
            if found is None
            else {"min": found.advertised[0], "max": found.advertised[1]},
            "finalized": level or None,
            "finalized_min": described.minimums.get(name),
            "finalized_name": described.table.level_name(name, level) if level else None,
        }
    epoch = described.finalized.epoch
    return {
        "source": described.source,
        "epoch": None if epoch < 0 else epoch,
        "features": features,
        "warnings": list(described.notes),
    }


def needs_text(
    survey: Survey, minimums: Mapping[str, int], needs: Mapping[str, Sequence[Need]]
) -> None:
    """Print who still needs levels below each planned minimum."""
    for feature, minimum in minimums.items():
        said = level_text(survey.described.table, feature, minimum)
        for need in needs[feature]:
            print_line(f"{need.who} {need.why}")
        if needs[feature]:
            print_line(f"levels of {feature} below {said} are still needed")
        else:
            asked = survey.described.source
            print_line(f"nobody needs levels of {feature} below {said}, told by {asked}")


def needs_json(
    survey: Survey, minimums: Mapping[str, int], needs: Mapping[str, Sequence[Need]]
) -> dict[str, Any]:
    """Return who still needs levels below each planned minimum as an object."""
    return {
        "source": survey.described.source,
        "features": {
            feature: {
                "minimum": minimum,
                "needed_by": [{"who": need.who, "why": need.why} for need in needs[feature]],
            }
            for feature, minimum in minimums.items()
        },
        "warnings": list(survey.described.notes),
    }


def told_sentence(table: FeatureTable, told: Told, *, dry_run: bool) -> str:
    """Say what became of one update."""
    to = level_text(table, told.feature, told.new)
    before = level_text(table, told.feature, told.old)
    if told.error:
        lossy = lossy_text(table, told)
        named = f"; {lossy}" if lossy else ""
        done = "cannot be" if dry_run else "was not"
        verb = "disabled" if told.new == 0 else f"{_verb(told)} to {to}"
        why = told.why.rstrip(".") or "the controller says no more"
        return f"{told.feature} {done} {verb}: {why}{named} ({told.error})"
    if told.old == told.new:
        return f"{told.feature} is at {to} already"
    done = "can be" if dry_run else "was"
    if told.new == 0:
        return f"{told.feature} {done} disabled; it was at {before}"
    since = f"from {before} " if told.old else ""
    return f"{told.feature} {done} {_verb(told)} {since}to {to}"


def told_json(table: FeatureTable, told: Sequence[Told], *, dry_run: bool) -> dict[str, Any]:
    """Return what became of all updates as an object."""
    return {
        "dry_run": dry_run,
        "results": [
            {
                "feature": row.feature,
                "from": row.old,
                "to": row.new,
                "to_name": table.level_name(row.feature, row.new) if row.new else None,
                "ok": not row.error,
                "error": row.error or None,
                "why": told_sentence(table, row, dry_run=dry_run),
                "dropped": list(row.dropped),
            }
            for row in told
        ],
    }


def lowering_question(table: FeatureTable, rows: Sequence[tuple[str, int, int]]) -> str:
    """Ask before levels go down: (feature, from, to) each."""
    said = [
        f"{name} from {level_text(table, name, old)} to {level_text(table, name, new)}"
        for name, old, new in rows
    ]
    return f"Lower {', '.join(said)}?"


def _verb(told: Told) -> str:
    return "upgraded" if told.new > told.old else "downgraded"
