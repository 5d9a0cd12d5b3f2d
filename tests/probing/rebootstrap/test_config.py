"""Settings that are invalid or unusual."""

import pytest

from probing.rebootstrap.config import (
    FIELD_OF_KEY,
    RebootstrapConfig,
    RebootstrapConfigError,
    rebootstrap_config,
)


@pytest.mark.parametrize("key", [key for key in FIELD_OF_KEY if key.endswith(".ms")])
@pytest.mark.parametrize("value", [-1, 1.5, True, "soon", None])
def test_a_time_that_is_no_time_is_refused_by_its_name(key, value):
    with pytest.raises(RebootstrapConfigError, match=f"{key} is .*; set a whole number"):
        rebootstrap_config({key: value})


def test_an_unknown_setting_is_refused_with_the_nearest():
    with pytest.raises(RebootstrapConfigError, match=r"did you mean 'reconnect.backoff.ms'"):
        rebootstrap_config({"reconect.backoff": 1})


@pytest.mark.parametrize(
    ("initial", "most", "delay"), [(100, 40, 40), (40, 40, 40), (100, 0, 100), (0, 0, 0)]
)
def test_a_back_off_that_may_not_grow_is_the_smaller_setting_that_is_set(initial, most, delay):
    config = RebootstrapConfig(reconnect_backoff_ms=initial, reconnect_backoff_max_ms=most)
    assert [config.reconnect_delay_ms(failures, 0.9) for failures in (1, 2, 9)] == [delay] * 3
