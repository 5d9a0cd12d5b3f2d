import pytest

from tests.assignor.placement.kafka_cases.cases import stored_cases
from tests.assignor.placement.kafka_cases.running import PORT, check, subjects

CASES = stored_cases("HighAvailabilityTaskAssignorTest")


@pytest.mark.parametrize(("case", "strategy"), subjects(CASES, PORT, "high_availability"))
def test_as_kafka_expects(case, strategy):
    check(case, strategy)
