"""The table of growth marks rows that miss the goal."""

import argparse

import pytest

from benchmarks.assign import shapes

SIZES = (10_000, 20_000, 40_000, 80_000)
OPTIONS = argparse.Namespace(
    least=10_000, most=80_000, shape=["lost"], strategy=["high_availability"]
)


@pytest.mark.parametrize(("power", "growth"), [(1, 2.0), (2, 4.0)])
def test_growth_is_that_of_all_compared_sizes(power, growth):
    seconds = [0.2 * (size / 10_000) ** power for size in SIZES]
    assert shapes.mean_growth(SIZES, seconds) == pytest.approx(growth)


def test_sizes_that_take_no_time_are_not_compared():
    assert shapes.mean_growth(SIZES, [0.001, 0.01, 0.2, 0.4]) is None
    assert shapes.mean_growth(SIZES, [0.001, 0.2, 0.4, 0.8]) == pytest.approx(2.0)


@pytest.mark.parametrize(("power", "missed"), [(1, 0), (2, 1)])
def test_a_row_that_grows_too_fast_is_named_in_the_end(monkeypatch, power, missed):
    def figures(size, *_):
        return {"high_availability": {"lost": 0.2 * (size / 10_000) ** power}}

    monkeypatch.setattr(shapes, "in_its_own_process", figures)
    assert len(shapes.rows_of(OPTIONS, "plain", 1)) == missed
