"""The model of the assignor of streams groups beside the class of the real broker."""

import pytest

from assignor.placement.streams_groups import assign_members
from system_tests.support.jvm import BrokerAssignor
from tests.assignor.placement.streams_groups.groups import (
    ANSWERS,
    FOLDER,
    RANDOM,
    answer_from_json,
    answer_to_json,
    json_lines,
    project_questions,
    question_from_json,
    random_question,
)
from tests.assignor.placement.streams_groups.store_results import RANDOM_GROUPS, RELEASE
from tests.nightly import sample

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

_SEEDS = sample(
    range(RANDOM_GROUPS, RANDOM_GROUPS + 2_000),
    every=10,
    reason="every run asks the class about 200 new groups, and all stored ones",
)


def test_the_real_class_gives_the_stored_answers_and_equals_the_model():
    stored = [
        *zip(project_questions(), json_lines(FOLDER / ANSWERS), strict=True),
        *((question_from_json(row), row) for row in json_lines(FOLDER / RANDOM)),
    ]
    with BrokerAssignor(RELEASE) as broker:
        for question, row in stored:
            answer = broker.assign_members(**question.arguments())
            assert answer_to_json(answer) == row["answer"], question.name
            assert answer == answer_from_json(row["answer"], question.members)
        for seed in _SEEDS:
            arguments = random_question(seed).arguments()
            assert broker.assign_members(**arguments) == assign_members(**arguments), seed
