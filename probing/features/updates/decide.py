"""The controller's decision about an update request (KIP-584, KIP-778); pure functions.

A failed request and a dry run change nothing. An applied request raises the epoch by one, whatever
the number of features.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from probing.features.updates import refusals
from probing.features.updates.facts import UpdateNumbers
from probing.features.updates.values import (
    Change,
    ControllerView,
    LevelRecord,
    UpdateError,
    UpdateModel,
    UpdateOutcome,
    UpdateRequest,
    UpdateResult,
)
from probing.rules import Rule, Rules, first, first_or_none


class RequestFacts(NamedTuple):
    """Inputs of a row about the request as a whole."""

    view: ControllerView
    request: UpdateRequest


REQUEST_RULES: Final[Rules[RequestFacts, UpdateError]] = (
    Rule(
        name="not the active controller",
        holds=lambda f: not f.view.is_active,
        says=UpdateError.NOT_CONTROLLER,
        why="this controller is not the active one; send the request to the active controller",
    ),
    Rule(
        name="not authorized",
        holds=lambda f: not f.request.is_authorized,
        says=UpdateError.CLUSTER_AUTHORIZATION_FAILED,
        why="the user may not alter the cluster; grant ALTER on the cluster, or use another user",
    ),
    Rule(
        name="not switched on yet",
        holds=lambda f: not f.view.is_enabled,
        says=UpdateError.INVALID_REQUEST,
        why="levels can be finalized once every node has the migration version; finish the second"
        " rolling bounce first",
    ),
    Rule(
        name="an empty request",
        holds=lambda f: not f.request.updates,
        says=UpdateError.INVALID_REQUEST,
        why="the request names no feature; name at least one with its level",
    ),
    Rule(
        name="a feature twice",
        holds=lambda f: len({row.feature for row in f.request.updates}) < len(f.request.updates),
        says=UpdateError.INVALID_REQUEST,
        why="a feature is named more than once; name each feature once, with one level",
    ),
)
"""Rows checked before the lines of the request; the first that holds refuses all lines."""


def decide_update(view: ControllerView, request: UpdateRequest) -> UpdateOutcome:
    """Return the outcome of a request: results, levels afterwards, records to append.

    Args:
        view: the controller's state.
        request: the updates.

    Returns:
        The outcome. An invalid request is an outcome as well; nothing is raised.
    """
    facts = RequestFacts(view, request)
    refusing = first_or_none(REQUEST_RULES, facts)
    if refusing is not None:
        return _refused_whole(facts, refusing)
    together = request.together or view.model is UpdateModel.KAFKA
    results = _results(view, request, together=together)
    failed = next((row for row in results if not row.ok), None)
    if failed is not None and together:
        return UpdateOutcome(results=_all_fail(results, failed), finalized=view.finalized)
    records = _records(results)
    if request.validate_only or not records:
        return UpdateOutcome(results=results, finalized=view.finalized)
    changes = {record.feature: record.level for record in records}
    return UpdateOutcome(
        results=results, finalized=view.finalized.changed(changes), records=records
    )


def _records(results: tuple[UpdateResult, ...]) -> tuple[LevelRecord, ...]:
    """Return the records of the lines that succeed, in the order of feature names.

    Kafka's controller also writes a record of a level that is already in force.
    """
    return tuple(
        LevelRecord(feature=row.feature, level=row.new_level)
        for row in sorted(results, key=lambda row: row.feature)
        if row.ok
    )


def _results(
    view: ControllerView, request: UpdateRequest, *, together: bool
) -> tuple[UpdateResult, ...]:
    """Return the result of each line.

    If all lines are applied together, a line is decided as if all others succeed. Otherwise it is
    decided given the levels that the other successful lines set. A failed line stays failed, so the
    loop runs at most once per line.
    """
    failed: dict[str, UpdateResult] = {}
    while True:
        proposed = dict(view.finalized.levels) | {
            row.feature: max(row.level, 0) for row in request.updates if row.feature not in failed
        }
        results = tuple(
            failed.get(row.feature)
            or _result(UpdateNumbers(view=view, update=row, proposed=proposed))
            for row in request.updates
        )
        failing = {row.feature: row for row in results if not row.ok}
        if together or failing == failed:
            return results
        failed = failing


def _result(numbers: UpdateNumbers) -> UpdateResult:
    rule = first(refusals.UPDATE_RULES[numbers.view.model], numbers)
    loses = tuple(level.name for level in numbers.lossy) if rule.says is UpdateError.NONE else ()
    return UpdateResult(
        feature=numbers.name,
        old_level=numbers.old,
        new_level=numbers.new,
        change=_change(numbers),
        error=rule.says,
        rule=rule.name,
        why=rule.sentence(numbers),
        loses=loses,
    )


def _change(numbers: UpdateNumbers) -> Change:
    if numbers.new == numbers.old:
        return Change.NOTHING
    if numbers.new == 0:
        return Change.DELETE
    if numbers.old == 0:
        return Change.ADD
    return Change.RAISE if numbers.new > numbers.old else Change.LOWER


def _all_fail(results: tuple[UpdateResult, ...], failed: UpdateResult) -> tuple[UpdateResult, ...]:
    """Return the results with the first failed line's error in every successful line."""
    return tuple(
        row
        if not row.ok
        else replace(
            row,
            error=failed.error,
            rule="all or none",
            why=f"not applied, because another line failed: {failed.why}",
            loses=(),
        )
        for row in results
    )


def _refused_whole(facts: RequestFacts, rule: Rule[RequestFacts, UpdateError]) -> UpdateOutcome:
    view, why = facts.view, rule.sentence(facts)
    results = tuple(
        UpdateResult(
            feature=update.feature,
            old_level=view.finalized.level_of(update.feature),
            new_level=max(update.level, 0),
            change=_change(UpdateNumbers(view=view, update=update, proposed=view.finalized.levels)),
            error=rule.says,
            rule=rule.name,
            why=why,
        )
        for update in facts.request.updates
    )
    return UpdateOutcome(
        results=results, finalized=view.finalized, request_error=rule.says, why=why
    )
