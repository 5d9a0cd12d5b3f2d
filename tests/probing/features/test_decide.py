import pytest

from probing.features import (
    Change,
    ControllerView,
    Feature,
    FeatureTable,
    FeatureUpdate,
    FinalizedLevels,
    Level,
    LevelRange,
    LevelRecord,
    NodeSupport,
    Role,
    UpdateError,
    UpdateKind,
    UpdateModel,
    UpdateRequest,
    decide_update,
)

UP, SAFE, UNSAFE = UpdateKind.UPGRADE, UpdateKind.SAFE_DOWNGRADE, UpdateKind.UNSAFE_DOWNGRADE


def level(number, *, back=True, requires=()):
    return Level(
        number=number,
        name=f"L{number}",
        release="1.0",
        changed=f"brought {number}",
        compatible_back=back,
        requires=requires,
    )


TABLE = FeatureTable(
    features=(
        # The example of KIP-778: only level 4 added a record that level 3 does not know.
        Feature(
            name="bar",
            levels=tuple(level(number, back=number != 4) for number in range(1, 6)),
            governs="an example",
        ),
        Feature(
            name="foo",
            levels=(level(1), level(2), level(7, requires=(("bar", 3),))),
            governs="another",
        ),
        Feature(name="gone", levels=(level(1),), governs="never lowered", can_be_lowered=False),
        Feature(name="kept", levels=(level(1), level(2)), governs="always on", is_always_on=True),
    )
)
ALL = TABLE.whole_ranges()


def broker(node_id, **ranges):
    return NodeSupport(node_id=node_id, role=Role.BROKER, ranges=ALL | ranges)


def controller(node_id, **ranges):
    return NodeSupport(node_id=node_id, role=Role.CONTROLLER, ranges=ALL | ranges)


def view_of(levels=None, *nodes, epoch=5, **fields):
    return ControllerView(
        table=TABLE,
        finalized=FinalizedLevels(levels=levels or {}, epoch=epoch),
        nodes=nodes or (broker(1), broker(2)),
        **fields,
    )


def ask(view, *updates, **fields):
    rows = tuple(FeatureUpdate(feature=n, level=lv, kind=kind) for n, lv, kind in updates)
    return decide_update(view, UpdateRequest(updates=rows, **fields))


def rules(outcome):
    return [row.rule for row in outcome.results]


@pytest.mark.kip("584-3", "core")
@pytest.mark.parametrize(
    ("levels", "update", "change", "after"),
    [
        ({}, ("bar", 2, UP), Change.ADD, {"bar": 2}),
        ({"bar": 2}, ("bar", 5, UP), Change.RAISE, {"bar": 5}),
        ({"bar": 3}, ("bar", 1, SAFE), Change.LOWER, {"bar": 1}),
        ({"bar": 3, "foo": 1}, ("bar", 0, SAFE), Change.DELETE, {"foo": 1}),
        ({"bar": 3}, ("bar", -7, UNSAFE), Change.DELETE, {}),
    ],
)
def test_a_level_is_added_raised_lowered_and_deleted(levels, update, change, after):
    outcome = ask(view_of(levels), update)
    assert outcome.ok
    assert [row.change for row in outcome.results] == [change]
    assert outcome.finalized == FinalizedLevels(levels=after, epoch=6)
    assert outcome.records == (LevelRecord(feature="bar", level=max(update[1], 0)),)


@pytest.mark.kip("584-3", "core")
def test_several_features_in_one_request_are_all_done_in_one_step_of_the_epoch():
    outcome = ask(view_of({"foo": 1}), ("foo", 7, UP), ("bar", 3, UP))
    assert outcome.finalized == FinalizedLevels(levels={"bar": 3, "foo": 7}, epoch=6)
    assert [record.feature for record in outcome.records] == ["bar", "foo"]
    assert [row.change for row in outcome.results] == [Change.RAISE, Change.ADD]


@pytest.mark.kip("584-3", "core")
def test_one_line_that_fails_fails_all_or_only_itself_as_requested():
    view, updates = view_of({"bar": 4}), (("bar", 2, SAFE), ("kept", 2, UP))
    together = ask(view, *updates)
    assert rules(together) == ["lossy downgrade", "all or none"]
    assert {row.error for row in together.results} == {UpdateError.UNSAFE_FEATURE_DOWNGRADE}
    assert (together.finalized, together.records) == (view.finalized, ())
    each = ask(view, *updates, together=False)
    assert rules(each) == ["lossy downgrade", "applied"]
    assert each.finalized == FinalizedLevels(levels={"bar": 4, "kept": 2}, epoch=6)
    assert each.error is UpdateError.UNSAFE_FEATURE_DOWNGRADE


def test_a_lossy_line_that_fails_because_of_another_loses_nothing():
    outcome = ask(view_of({"bar": 5, "kept": 2}), ("bar", 1, UNSAFE), ("kept", 1, UP))
    assert rules(outcome) == ["all or none", "lowered by an upgrade"]
    assert [row.loses for row in outcome.results] == [(), ()]


@pytest.mark.parametrize(
    ("model", "together", "second"),
    [
        (UpdateModel.KIP, False, "requires another feature"),
        (UpdateModel.KIP, True, "all or none"),
        (UpdateModel.KAFKA, False, "all or none"),
        (UpdateModel.KAFKA, True, "all or none"),
    ],
)
def test_a_line_that_requires_one_that_fails_has_its_own_error_unless_all_fail_together(
    model, together, second
):
    narrow = LevelRange(min=1, max=2, can_be_off=True)
    view = view_of({"bar": 1, "foo": 2}, broker(1), broker(2, bar=narrow), model=model)
    outcome = ask(view, ("bar", 3, UP), ("foo", 7, UP), together=together)
    assert rules(outcome) == ["a node cannot", second]
    assert (outcome.finalized, outcome.records) == (view.finalized, ())


@pytest.mark.kip("584-4", "core")
def test_an_update_names_every_live_node_that_cannot_and_its_range():
    less, without = broker(2, bar=LevelRange(min=1, max=3)), NodeSupport(node_id="c")
    nodes = (broker(1), less, without)
    outcome = ask(view_of({"bar": 1}, *nodes), ("bar", 4, UP))
    assert outcome.error is UpdateError.FEATURE_UPDATE_FAILED
    assert outcome.finalized.level_of("bar") == 1
    assert "broker 2 (1..3), broker c (none)" in outcome.results[0].why
    assert "broker 1" not in outcome.results[0].why


WRONG = [
    ({}, ("baz", 1, UP), "unknown feature"),
    ({}, ("baz", 0, SAFE), "unknown feature"),
    ({"bar": 1}, ("bar", 0, UP), "deleted by an upgrade"),
    ({"kept": 1}, ("kept", 0, UNSAFE), "cannot be off"),
    ({}, ("bar", 0, SAFE), "nothing to delete"),
    ({"bar": 2}, ("bar", 2, UP), "already there"),
    ({"bar": 2}, ("bar", 3, SAFE), "raised by a downgrade"),
    ({"bar": 2}, ("bar", 1, UP), "lowered by an upgrade"),
    ({"foo": 1}, ("foo", 5, UP), "no such level"),
]


@pytest.mark.kip("584-5", "core")
@pytest.mark.parametrize(("levels", "update", "rule"), WRONG, ids=[row[2] for row in WRONG])
def test_wrong_requests_are_invalid_and_change_nothing(levels, update, rule):
    view = view_of(levels)
    outcome = ask(view, update)
    assert rules(outcome) == [rule]
    assert outcome.error is UpdateError.INVALID_REQUEST
    assert (outcome.finalized, outcome.records) == (view.finalized, ())
    assert update[0] in outcome.results[0].why


@pytest.mark.kip("584-5", "core")
@pytest.mark.parametrize(
    ("fields", "asked", "error", "rule"),
    [
        ({"is_active": False}, {}, UpdateError.NOT_CONTROLLER, "not the active controller"),
        (
            {},
            {"is_authorized": False},
            UpdateError.CLUSTER_AUTHORIZATION_FAILED,
            "not authorized",
        ),
        ({"is_enabled": False}, {}, UpdateError.INVALID_REQUEST, "not switched on yet"),
    ],
)
def test_an_unauthorized_controller_or_user_changes_nothing(fields, asked, error, rule):
    view = view_of({"bar": 1}, **fields)
    outcome = ask(view, ("bar", 2, UP), **asked)
    assert (outcome.error, rules(outcome)) == (error, [rule])
    assert (outcome.finalized, outcome.records) == (view.finalized, ())
    assert outcome.why == outcome.results[0].why


@pytest.mark.kip("584-5", "core")
@pytest.mark.parametrize("updates", [(), (("bar", 2, UP), ("bar", 3, UP))])
def test_an_empty_request_and_a_feature_twice_are_invalid(updates):
    outcome = ask(view_of({"bar": 1}), *updates)
    assert outcome.error is UpdateError.INVALID_REQUEST
    assert not outcome.ok
    assert outcome.why
    assert outcome.finalized.epoch == 5


@pytest.mark.kip("778-2", "core")
def test_the_kind_of_an_update_is_its_number_on_the_wire():
    assert [kind.value for kind in (UP, SAFE, UNSAFE)] == [1, 2, 3]


@pytest.mark.kip("778-2", "core")
@pytest.mark.parametrize("kind", [UP, SAFE, UNSAFE])
@pytest.mark.parametrize("wanted", range(6))
@pytest.mark.parametrize("old", range(6))
def test_a_dry_run_reports_the_change_and_does_nothing(old, wanted, kind):
    view = view_of({"bar": old} if old else {})
    done = ask(view, ("bar", wanted, kind))
    dry = ask(view, ("bar", wanted, kind), validate_only=True)
    assert dry.results == done.results
    assert (dry.finalized, dry.records) == (view.finalized, ())


@pytest.mark.kip("778-3", "core")
@pytest.mark.parametrize("wanted", range(5))
@pytest.mark.parametrize("old", range(1, 6))
def test_a_safe_downgrade_is_lossless_and_names_the_level_that_forbids_it(old, wanted):
    if wanted >= old:
        return
    outcome = ask(view_of({"bar": old}), ("bar", wanted, SAFE))
    if wanted < 4 <= old:
        assert outcome.error is UpdateError.UNSAFE_FEATURE_DOWNGRADE
        assert "level 4 (L4: brought 4)" in outcome.results[0].why
        assert outcome.records == ()
    else:
        assert outcome.ok
        assert outcome.finalized.level_of("bar") == wanted
        assert outcome.results[0].loses == ()


def test_an_unsafe_downgrade_names_the_levels_that_lose_data():
    outcome = ask(view_of({"bar": 5}), ("bar", 1, UNSAFE))
    assert rules(outcome) == ["unsafe downgrade"]
    assert outcome.results[0].loses == ("L4",)
    assert rules(ask(view_of({"bar": 3}), ("bar", 1, UNSAFE))) == ["applied"]


def test_a_feature_that_cannot_be_lowered_is_not_even_lowered_with_losses():
    outcome = ask(view_of({"gone": 1}), ("gone", 0, UNSAFE))
    assert rules(outcome) == ["never lowered"]
    assert outcome.error is UpdateError.UNSAFE_FEATURE_DOWNGRADE


def test_required_levels_are_finalized_first_or_together():
    assert rules(ask(view_of({"foo": 1}), ("foo", 7, UP))) == ["requires another feature"]
    assert ask(view_of({"foo": 1, "bar": 3}), ("foo", 7, UP)).ok
    view = view_of({"foo": 7, "bar": 3})
    refused = ask(view, ("bar", 2, SAFE))
    assert rules(refused) == ["required by another feature"]
    assert "foo=7" in refused.results[0].why
    assert ask(view, ("bar", 2, SAFE), ("foo", 2, SAFE)).ok


@pytest.mark.kip("584-7", "core")
def test_no_level_goes_below_its_deprecated_minimum():
    view = view_of({"bar": 3}, minimums={"bar": 2})
    assert ask(view, ("bar", 2, SAFE)).ok
    refused = ask(view, ("bar", 1, UNSAFE))
    assert rules(refused) == ["deprecated level"]
    assert "the minimum is 2" in refused.results[0].why


SMALL = LevelRange(min=1, max=1, can_be_off=True)


@pytest.mark.kip("778-9", "core")
@pytest.mark.parametrize("size", [1, 3, 5])
def test_at_least_a_majority_of_the_quorum_has_to_support_the_new_level(size):
    for able in range(1, size + 1):
        for registered in range(able, size + 1):
            nodes = [controller(n) for n in range(able)]
            nodes += [controller(n, bar=SMALL) for n in range(able, registered)]
            view = view_of({"bar": 1}, *nodes, node_id=0, quorum=tuple(range(size)))
            outcome = ask(view, ("bar", 2, UP))
            if able > size // 2:
                assert outcome.ok
            else:
                assert rules(outcome) == ["no majority of the quorum"]
                assert outcome.error is UpdateError.FEATURE_UPDATE_FAILED
                assert ("not registered" in outcome.results[0].why) == (registered < size)


def test_the_active_controller_has_to_support_what_it_finalizes():
    nodes = (controller(0, bar=SMALL), controller(1), controller(2))
    view = view_of({"bar": 1}, *nodes, node_id=0, quorum=(0, 1, 2))
    assert rules(ask(view, ("bar", 2, UP))) == ["a node cannot"]


def test_errors_have_kafkas_numbers():
    numbers = {error.value: error.code for error in UpdateError}
    assert numbers == {
        "NONE": 0,
        "CLUSTER_AUTHORIZATION_FAILED": 31,
        "NOT_CONTROLLER": 41,
        "INVALID_REQUEST": 42,
        "INVALID_UPDATE_VERSION": 95,
        "FEATURE_UPDATE_FAILED": 96,
        "UNSAFE_FEATURE_DOWNGRADE": 95,
    }
