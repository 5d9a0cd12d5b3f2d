"""Records that the function of a member does not understand, and what is left without them."""

from collections import Counter

from assignor import BadRecordAction, DeadLetter

SKIP, FAIL = BadRecordAction.SKIP, BadRecordAction.FAIL
DEAD = DeadLetter("dead")
POISON = "odd"


def fill(cluster, words):
    """Write records with keys, values and headers, as clients have them."""
    cluster.write(*words)
    for records in cluster.input.values():
        for record in records:
            record.key, record.value = record.word.encode(), b"value"
            record.headers = [("trace", b"1"), ("__streams.errors.offset", b"of before")]


def without_poison(cluster):
    words = Counter(r.word for rows in cluster.input.values() for r in rows if r.word != POISON)
    letters = Counter()
    for word, number in words.items():
        letters[word[0]] += number
    return {"by-word": dict(words), "by-letter": dict(letters)}


def poisoned(owner, error=None):
    """Have a member's function raise for some records, after it has written something."""
    error = error or ValueError("not understood")
    count = owner.count

    def handle(record, state):
        if record.word == POISON:
            state[owner.words].put("half of it", 1)
            raise error
        count(record, state)

    owner.count = handle


def letters_of(cluster):
    return {sent: number for sent, number in cluster.outputs.items() if sent[0] == "dead"}
