"""The model of the assignor of streams groups beside the classes of real brokers."""

import pytest

from probing import find_release
from system_tests.support.jvm import BrokerAssignor
from tests.assignor.placement.streams_groups.groups import (
    ANSWERS,
    FOLDER,
    OFFSETS_SINCE,
    RANDOM,
    RELEASES,
    answer_from_json,
    answer_to_json,
    json_lines,
    model_answer,
    project_questions,
    question_from_json,
    random_question,
    with_offsets,
)
from tests.assignor.placement.streams_groups.store_results import RANDOM_GROUPS
from tests.nightly import sample

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

_SEEDS = sample(
    range(RANDOM_GROUPS, RANDOM_GROUPS + 2_000),
    every=10,
    reason="every run asks the class about 200 new groups, and all stored ones",
)


@pytest.mark.parametrize("release", RELEASES)
def test_the_real_class_gives_the_stored_answers_and_equals_the_model(release):
    stored = [
        *zip(project_questions(), json_lines(FOLDER / ANSWERS), strict=True),
        *((question_from_json(row), row) for row in json_lines(FOLDER / RANDOM)),
    ]
    knows_offsets = find_release(release).order >= OFFSETS_SINCE
    with BrokerAssignor(release) as broker:
        for question, row in stored:
            if release not in row["answers"]:
                continue
            answer = broker.assign_members(**question.arguments())
            assert answer_to_json(answer) == row["answers"][release], question.name
            assert answer == answer_from_json(row["answers"][release], question.members)
        for seed in _SEEDS:
            question = random_question(seed)
            if knows_offsets:
                question = with_offsets(question, seed)
            answer = broker.assign_members(**question.arguments())
            assert answer == model_answer(question, release), seed
