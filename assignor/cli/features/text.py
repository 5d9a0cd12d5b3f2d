"""Output of ``assignor features``: tables and sentences for people, objects for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

from assignor.cli.toolkit.exit_status import warn
from assignor.cli.toolkit.text import print_line, print_table
from assignor.levels import Described, LevelResult, Need, Survey, level_text, lossy_text
from probing.features import FeatureTable

_HEAD = ("feature", "supported", "finalized")


def described_text(described: Described) -> None:
    """Print finalized and supported levels as a table."""
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
    known = "epoch not known" if epoch < 0 else f"epoch {epoch}"
    print_line(f"{known}, according to {described.source}")
    for note in described.notes:
        warn(note)


def described_json(described: Described) -> dict[str, Any]:
    """Return finalized and supported levels as an object."""
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
        level = level_text(survey.described.table, feature, minimum)
        for need in needs[feature]:
            print_line(f"{need.who} {need.why}")
        if needs[feature]:
            print_line(f"levels of {feature} below {level} are still needed")
        else:
            source = survey.described.source
            print_line(f"levels of {feature} below {level} are not needed, according to {source}")


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


def result_sentence(table: FeatureTable, result: LevelResult, *, dry_run: bool) -> str:
    """Return a sentence about the result of one update."""
    to = level_text(table, result.feature, result.new)
    before = level_text(table, result.feature, result.old)
    if result.error:
        lossy = lossy_text(table, result)
        named = f"; {lossy}" if lossy else ""
        done = "cannot be" if dry_run else "was not"
        verb = "disabled" if result.new == 0 else f"{_verb(result)} to {to}"
        why = result.why.rstrip(".") or "the controller gives no reason"
        return f"{result.feature} {done} {verb}: {why}{named} ({result.error})"
    if result.old == result.new:
        return f"{result.feature} is already at {to}"
    done = "can be" if dry_run else "was"
    if result.new == 0:
        return f"{result.feature} {done} disabled; it was at {before}"
    since = f"from {before} " if result.old else ""
    return f"{result.feature} {done} {_verb(result)} {since}to {to}"


def results_json(
    table: FeatureTable, results: Sequence[LevelResult], *, dry_run: bool
) -> dict[str, Any]:
    """Return the results of all updates as an object."""
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
                "why": result_sentence(table, row, dry_run=dry_run),
                "dropped": list(row.dropped),
            }
            for row in results
        ],
    }


def lowering_question(table: FeatureTable, rows: Sequence[tuple[str, int, int]]) -> str:
    """Return the question to ask before levels are lowered; rows are (feature, from, to)."""
    changes = [
        f"{name} from {level_text(table, name, old)} to {level_text(table, name, new)}"
        for name, old, new in rows
    ]
    return f"Lower {', '.join(changes)}?"


def _verb(result: LevelResult) -> str:
    return "upgraded" if result.new > result.old else "downgraded"
