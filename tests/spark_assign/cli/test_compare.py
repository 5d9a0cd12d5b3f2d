"""What `spark-assign compare` prints; the comparison itself is in the tests of the batch."""

import json
import sys
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from spark_assign.cli.compare import Results, compared, read_results
from spark_assign.cli.main import main
from spark_assign.tables import BadTable


def test_differing_groups_that_are_not_listed_are_counted(monkeypatch):
    found = {"total": 10, "equal": 2, "different": ["a", "b\n", "c", "d", "e"]}
    module = "spark_assign.cli.compare"
    monkeypatch.setattr(f"{module}.job", lambda *_: nullcontext())
    monkeypatch.setattr(f"{module}.read_results", lambda *_: Results(frame=None))
    monkeypatch.setattr(f"{module}.compared", lambda *_: found)
    result = CliRunner().invoke(main, ["compare", "plans", "answers"])
    assert result.exit_code == 1
    head, *lines = result.stdout.splitlines()
    assert head == "2 / 10 equal"
    assert lines[1] == "  differs: b\\n"
    assert lines[-1] == "  and 3 more"


def answers(path, *lines):
    """A file of answers; a text is a line as it stands."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")
    return str(path)


def plan(name, *active, **more):
    return {"name": name, "probing": False, "clients": {"a": {"active": active}}} | more


def test_only_plans_that_both_inputs_have_once_are_equal(spark, tmp_path):
    equal = [plan("same", "0_0", "0_1"), plan("no probing", "0_0")]
    first = [*equal, plan("twice", "0_0"), {"name": "bad", "error": "A"}]
    first += [plan("probing"), plan("only")]
    second = [plan("same", "0_1", "0_0"), plan("no probing", "0_0", probing=None)]
    second += [plan("twice", "0_0"), plan("twice", "0_0"), {"name": "bad", "error": "A"}]
    second += [plan("probing", probing=True)]
    paths = answers(tmp_path / "a.jsonl", *first), answers(tmp_path / "b.jsonl", *second)
    found = compared(*(read_results(spark, path).frame for path in paths))
    different = ["bad", "only", "probing", "twice"]
    assert found == {"total": 6, "equal": 2, "different": different}


def test_a_line_that_is_no_answer_is_named_with_its_file(spark, tmp_path):
    wrong = {
        '{"name": "cut", "clients": {"a": {"act': "column 35: broken JSON",
        '{"name": "x", "clients": {"a": {"active": "0_1"}}}': "a: active is str; give a list",
        '{"name": "x", "clients": {}, "probing": "yes"}': "probing is 'yes'; give true or false",
        '{"name": "x", "klients": {}}': "there is neither clients nor error",
        '{"clients": {}}': "name is None; give text",
    }
    path = answers(tmp_path / "a.jsonl", plan("good"), *wrong)
    results = read_results(spark, path)
    compared(results.frame, results.frame)
    with pytest.raises(BadTable) as caught:
        results.check()
    for line, sentence in enumerate(wrong.values(), start=2):
        assert f"{path}, line {line}: {sentence}" in str(caught.value)


def test_each_line_is_parsed_once_if_all_are_answers(spark, tmp_path, monkeypatch):
    parsed = spark.sparkContext.accumulator(0)
    module = sys.modules["spark_assign.cli.compare"]
    read = module._answers

    def counting(batches):
        for batch in read(batches):
            parsed.add(batch.num_rows)
            yield batch

    monkeypatch.setattr(module, "_answers", counting)
    paths = [
        answers(tmp_path / f"{side}.jsonl", plan("a", task), plan("b", "0_0"))
        for side, task in (("left", "0_0"), ("right", "0_1"))
    ]
    sides = [read_results(spark, path) for path in paths]
    found = compared(*(side.frame for side in sides))
    for side in sides:
        side.check()
    assert found == {"total": 2, "equal": 1, "different": ["a"]}
    assert parsed.value == 4
