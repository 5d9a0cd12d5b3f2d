"""The controller's answer to an update request: pure, one line at a time, all or each.

Nothing is changed by a failed request or by a dry run; what is applied is one step of the epoch,
whatever the number of features (KIP-584, KIP-778).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from probing.features.rules import UpdateRule, first_update_rule
from probing.features.update import (
    Change,
    ControllerView,
    LevelRecord,
    UpdateError,
    UpdateModel,
    UpdateOutcome,
    UpdateRequest,
    UpdateResult,
)
from probing.features.update_facts import UpdateNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRule:
    """One row about the request as a whole: when it holds, the error, the sentence."""

    name: str
    holds: Callable[[ControllerView, UpdateRequest], bool]
    error: UpdateError
    why: str


REQUEST_RULES: Final = (
    RequestRule(
        name="not the active controller",
        holds=lambda view, _: not view.is_active,
        error=UpdateError.NOT_CONTROLLER,
        why="this controller is not the active one; ask the active one",
    ),
    RequestRule(
        name="not authorized",
        holds=lambda _, request: not request.is_authorized,
        error=UpdateError.CLUSTER_AUTHORIZATION_FAILED,
        why="the one who asks may not alter the cluster; grant ALTER on it, or ask as another user",
    ),
    RequestRule(
        name="not switched on yet",
        holds=lambda view, _: not view.is_enabled,
        error=UpdateError.INVALID_REQUEST,
        why="levels are finalized once every node has the migration version; finish the second"
        " rolling bounce first",
    ),
    RequestRule(
        name="an empty request",
        holds=lambda _, request: not request.updates,
        error=UpdateError.INVALID_REQUEST,
        why="the request names no feature; name at least one with its level",
    ),
    RequestRule(
        name="a feature twice",
        holds=lambda _, request: (
            len({row.feature for row in request.updates}) < len(request.updates)
        ),
        error=UpdateError.INVALID_REQUEST,
        why="a feature is named more than once; name each with the one level it should have",
    ),
)
"""Checked before any line; none that holds, and the lines are looked at one by one."""


def decide_update(view: ControllerView, request: UpdateRequest) -> UpdateOutcome:
    """Return what becomes of a request: results, levels afterwards, records to append.

    Args:
        view: what the controller sees.
        request: the updates; one without any changes nothing.

    Returns:
        The outcome. Nothing is raised, whatever is asked.
    """
    for row in REQUEST_RULES:
        if row.holds(view, request):
            return _refused_whole(view, request, row)
    results = _results(view, request)
    together = request.together or view.model is UpdateModel.KAFKA
    failed = next((row for row in results if not row.ok), None)
    if failed is not None and together:
        return UpdateOutcome(results=_all_fail(results, failed), finalized=view.finalized)
    records = _records(view, results)
    if request.validate_only or not records:
        return UpdateOutcome(results=results, finalized=view.finalized)
    changes = {record.feature: record.level for record in records}
    return UpdateOutcome(
        results=results, finalized=view.finalized.changed(changes), records=records
    )


def _records(view: ControllerView, results: tuple[UpdateResult, ...]) -> tuple[LevelRecord, ...]:
    """Return the records of the lines that are done, in the order of feature names."""
    return tuple(
        LevelRecord(feature=row.feature, level=row.new_level)
        for row in sorted(results, key=lambda row: row.feature)
        if row.ok and row.new_level != view.finalized.level_of(row.feature)
    )


def _results(view: ControllerView, request: UpdateRequest) -> tuple[UpdateResult, ...]:
    """Judge each line as if all the others were done, but for those that fail.

    A line that failed stays failed, so there are at most as many rounds as lines.
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
        if request.together or failing == failed:
            return results
        failed = failing


def _result(numbers: UpdateNumbers) -> UpdateResult:
    rule = first_update_rule(numbers)
    loses = tuple(level.name for level in numbers.lossy) if rule.error is UpdateError.NONE else ()
    return UpdateResult(
        feature=numbers.name,
        old_level=numbers.old,
        new_level=numbers.new,
        change=_change(numbers),
        error=rule.error,
        rule=rule.name,
        why=_sentence(rule, numbers),
        loses=loses,
    )


def _sentence(rule: UpdateRule, numbers: UpdateNumbers) -> str:
    return rule.why.format_map(_Attributes(numbers))


class _Attributes(dict[str, object]):
    """The attributes of the numbers, looked up only when a sentence names them."""

    def __init__(self, numbers: UpdateNumbers) -> None:
        super().__init__()
        self._numbers = numbers

    def __missing__(self, name: str) -> object:
        return getattr(self._numbers, name)


def _change(numbers: UpdateNumbers) -> Change:
    if numbers.new == numbers.old:
        return Change.NOTHING
    if numbers.new == 0:
        return Change.DELETE
    if numbers.old == 0:
        return Change.ADD
    return Change.RAISE if numbers.new > numbers.old else Change.LOWER


def _all_fail(results: tuple[UpdateResult, ...], failed: UpdateResult) -> tuple[UpdateResult, ...]:
    """Give the lines that could be done the error of the first that cannot."""
    return tuple(
        row
        if not row.ok
        else replace(
            row,
            error=failed.error,
            rule="all or none",
            why=f"nothing is done, since {failed.why}",
            loses=(),
        )
        for row in results
    )


def _refused_whole(view: ControllerView, request: UpdateRequest, row: RequestRule) -> UpdateOutcome:
    results = tuple(
        UpdateResult(
            feature=update.feature,
            old_level=view.finalized.level_of(update.feature),
            new_level=max(update.level, 0),
            change=_change(UpdateNumbers(view=view, update=update, proposed=view.finalized.levels)),
            error=row.error,
            rule=row.name,
            why=row.why,
        )
        for update in request.updates
    )
    return UpdateOutcome(
        results=results, finalized=view.finalized, request_error=row.error, why=row.why
    )
