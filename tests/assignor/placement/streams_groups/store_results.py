"""Store what the classes of real brokers answer.

python -m tests.assignor.placement.streams_groups.store_results
"""

import gzip
import json
from contextlib import ExitStack

from probing import find_release
from system_tests.support.jvm import BrokerAssignor
from tests.assignor.placement.streams_groups.groups import (
    ANSWERS,
    FOLDER,
    OFFSETS_SINCE,
    RANDOM,
    RELEASES,
    added_thread,
    answer_to_json,
    project_questions,
    random_question,
    with_offsets,
)

RANDOM_GROUPS = 400
OFFSET_GROUPS = 100


def main():
    with ExitStack() as stack:
        brokers = [stack.enter_context(BrokerAssignor(release)) for release in RELEASES]
        rows = [
            {"name": question.name, "answers": answers(brokers, question)}
            for question in project_questions()
        ]
        write(ANSWERS, rows)
        questions = [added_thread(), *map(random_question, range(RANDOM_GROUPS))]
        questions += [with_offsets(random_question(seed), seed) for seed in range(OFFSET_GROUPS)]
        rows = [
            {**question.to_json(), "answers": answers(brokers, question)} for question in questions
        ]
        write(RANDOM, rows)


def answers(brokers, question):
    """The answer of each release; questions with offsets are asked of those that know them."""
    has_offsets = any(member.offsets for member in question.members)
    return {
        broker.release: answer_to_json(broker.assign_members(**question.arguments()))
        for broker in brokers
        if not has_offsets or find_release(broker.release).order >= OFFSETS_SINCE
    }


def write(name, rows):
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
