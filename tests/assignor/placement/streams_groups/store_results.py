"""Store what the class of a real broker answers.

python -m tests.assignor.placement.streams_groups.store_results
"""

import gzip
import json

from system_tests.support.jvm import BrokerAssignor
from tests.assignor.placement.streams_groups.groups import (
    ANSWERS,
    FOLDER,
    RANDOM,
    added_thread,
    answer_to_json,
    project_questions,
    random_question,
)

RELEASE = "4.3.1"
RANDOM_GROUPS = 400


def main():
    with BrokerAssignor(RELEASE) as broker:
        rows = [
            {"name": question.name, "answer": answer(broker, question)}
            for question in project_questions()
        ]
        write(ANSWERS, rows)
        questions = [added_thread(), *map(random_question, range(RANDOM_GROUPS))]
        rows = [
            {**question.to_json(), "answer": answer(broker, question)} for question in questions
        ]
        write(RANDOM, rows)


def answer(broker, question):
    return answer_to_json(broker.assign_members(**question.arguments()))


def write(name, rows):
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
