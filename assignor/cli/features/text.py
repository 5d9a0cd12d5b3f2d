"""Output of ``assignor features``: tables and sentences for people, objects for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assignor.cli.toolkit.exit_status import warn
from assignor.cli.toolkit.text import SENTENCE_LIMIT, print_line, print_table
from assignor.levels import Described, LevelResult, Need, Survey, level_text, lossy_text
from encoding import shown
from probing.features import FeatureTable, FeatureUpdate, UpdateKind

_HEAD = ("feature", "supported", "finalized")

Change = tuple[LevelResult, UpdateKind]
"""The result of an update, and what kind was asked for."""


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


def result_sentence(
    table: FeatureTable, result: LevelResult, kind: UpdateKind, *, dry_run: bool
) -> str:
    """Return a sentence about the result of one update of a kind."""
    to = level_text(table, result.feature, result.new)
    before = level_text(table, result.feature, result.old)
    verb = "upgraded" if kind is UpdateKind.UPGRADE else "downgraded"
    if result.error:
        done = "cannot be" if dry_run else "was not"
        asked = "disabled" if result.new == 0 else f"{verb} to {to}"
        return f"{result.feature} {done} {asked}: {_reason(table, [(result, kind)])}"
    if result.old == result.new:
        return f"{result.feature} is already at {to}"
    done = "can be" if dry_run else "was"
    if result.new == 0:
        return f"{result.feature} {done} disabled; it was at {before}"
    since = f"from {before} " if result.old else ""
    return f"{result.feature} {done} {verb} {since}to {to}"


def error_sentences(
    table: FeatureTable,
    results: Sequence[Change],
    *,
    dry_run: bool,
) -> Iterator[str]:
    """Yield a sentence for each reason of errors: a controller gives one for all its updates."""
    by_reason: dict[tuple[str, str], list[Change]] = {}
    for result, kind in results:
        if result.error:
            by_reason.setdefault((result.error, result.why), []).append((result, kind))
    for rows in by_reason.values():
        if len(rows) == 1:
            yield result_sentence(table, *rows[0], dry_run=dry_run)
            continue
        named = ", ".join(
            f"{row.feature} to {level_text(table, row.feature, row.new)}" for row, _ in rows
        )
        done = "can be" if dry_run else "was"
        yield f"none of {len(rows)} features {done} changed ({named}): {_reason(table, rows)}"


def _reason(table: FeatureTable, rows: Sequence[Change]) -> str:
    """Return why updates failed, which is the same for all rows, and its name."""
    first = rows[0][0]
    why = first.why.rstrip(".") or "the controller gives no reason"
    lowered = [row for row, kind in rows if kind is not UpdateKind.UPGRADE]
    lossy = [text for row in lowered if (text := lossy_text(table, row))]
    return f"{'; '.join((why, *lossy))} ({first.error})"


def results_json(
    table: FeatureTable, results: Sequence[Change], *, dry_run: bool
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
                "why": result_sentence(table, row, kind, dry_run=dry_run),
                "dropped": list(row.dropped),
            }
            for row, kind in results
        ],
    }


def lowering_question(described: Described, updates: Sequence[FeatureUpdate]) -> str:
    """Return the question to ask before levels are lowered; empty if none is."""
    changes = []
    for update in updates:
        old, new = described.finalized.level_of(update.feature), max(update.level, 0)
        if new < old:
            ends = (level_text(described.table, update.feature, level) for level in (old, new))
            changes.append(f"{update.feature} from {' to '.join(ends)}")
    return shown(f"Lower {', '.join(changes)}?", limit=SENTENCE_LIMIT) if changes else ""
