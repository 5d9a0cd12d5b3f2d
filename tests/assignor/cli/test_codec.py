"""`assignor decode` and `assignor encode`, called by users and by programs."""

import json
import subprocess
import sys
from dataclasses import replace
from uuid import UUID

import pytest
from click.testing import CliRunner

from assignor.cli import codec
from assignor.cli.codec import decode, encode
from assignor.cli.toolkit import text
from encoding import (
    Assignment,
    HostInfo,
    NativeSubscription,
    Subscription,
    TaskId,
    assignment_to_fields,
    encode_assignment,
    encode_subscription,
)
from tests.versions import LATER, NEWEST

FUTURE = f"{LATER:08x}{LATER + 1:08x}"
TAGGED = (
    "0000000b0000000b2d714fa9b1a9b86fe2023913b293e6220000000000000001000000000000000100000000"
    "00000005ffff510000000000000001000000047a6f6e65000000027a31"
)
ANSWER = Assignment(
    version=11,
    commonly_supported_version=11,
    active_tasks=(TaskId(0, 1),),
    partitions_by_host={HostInfo("h\0\ud800", 9): [("t", 1)]},
)


def call(command, *arguments, stdin=None):
    return CliRunner().invoke(command, arguments, input=stdin, catch_exceptions=False)


def ask(command, *questions):
    """Return the answers to questions, one per line; texts are passed unchanged."""
    lines = [q if isinstance(q, str | bytes) else json.dumps(q) for q in questions]
    raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    result = call(command, "--jsonl", "-", stdin=raw)
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_field_is_listed_with_its_place_and_meaning():
    result = call(decode, "--kind", "subscription", "--hex", TAGGED + "ff00")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["offset", "size", "type", "field", "value", "meaning"]
    assert rows[1][:5] == ["0", "4", "int32", "version", "11"]
    assert ["24", "4", "bytes", "user_endpoint", '""'] in [row[:5] for row in rows]
    assert ["67", "6", "bytes", "client_tags[0].value", '"z1"'] in [row[:5] for row in rows]
    assert "trailing bytes" in result.stdout.splitlines()[-1]
    assert "ff00" in rows[-1]


def test_json_is_the_canonical_fields():
    result = call(decode, "--kind", "subscription", "--hex", TAGGED, "--format", "json")
    fields = json.loads(result.stdout)
    assert fields["task_offset_sums"] == [[0, 1, None, 5]]
    assert fields["client_tags"] == {"zone": "z1"}


def test_a_future_subscription_prints_its_two_numbers():
    result = call(decode, "--kind", "subscription", "--hex", FUTURE, "--format", "json")
    assert json.loads(result.stdout) == {"version": LATER, "latest_supported": LATER + 1}
    text = call(decode, "--kind", "subscription", "--hex", FUTURE).stdout
    assert "latest_supported_version" in text


@pytest.mark.parametrize(
    "content", [bytes.fromhex(TAGGED), TAGGED.encode(), f" {TAGGED}\n".encode()]
)
def test_a_file_may_hold_the_blob_raw_or_in_hex(tmp_path, content):
    path = tmp_path / "blob"
    path.write_bytes(content)
    expected = call(decode, "--kind", "subscription", "--hex", TAGGED).stdout
    assert call(decode, "--kind", "subscription", "--file", str(path)).stdout == expected
    assert call(decode, "--kind", "subscription", "--file", "-", stdin=content).stdout == expected


def test_hex_may_come_from_stdin():
    result = call(decode, "--kind", "subscription", "--hex", "-", stdin=FUTURE.encode() + b"\n")
    assert result.exit_code == 0


def test_names_with_half_a_pair_are_printed_as_escapes():
    data = encode_assignment(ANSWER).hex()
    for format_ in ("text", "json"):
        result = call(decode, "--kind", "assignment", "--hex", data, "--format", format_)
        assert result.exit_code == 0
        assert r'"h\u0000\ud800"' in result.stdout
        assert result.stdout.isascii()


def test_a_terminal_gets_a_table(monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "160")):
        monkeypatch.setenv(name, value)
    result = call(decode, "--kind", "subscription", "--hex", TAGGED)
    assert "┃" in result.stdout
    assert "client_tags[0].key" in result.stdout
    monkeypatch.setattr(text, "_TABLE_LIMIT", 3)
    assert "┃" not in call(decode, "--kind", "subscription", "--hex", TAGGED).stdout


def test_long_values_are_cut_in_the_listing():
    answer = Assignment(version=4, partitions_by_host={HostInfo("h" * 200, 1): []})
    result = call(decode, "--kind", "assignment", "--hex", encode_assignment(answer).hex())
    assert "h" * 50 + "..." not in result.stdout.replace("h" * 56 + "...", "")
    assert max(map(len, result.stdout.splitlines())) < 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "subscription", "--hex", "0g"), "not hex"),
        (("--kind", "subscription", "--hex", "000"), "not hex"),
        (("--kind", "subscription", "--hex", "00000001"), "process_id needs 16 bytes, 0 are left"),
        (
            ("--kind", "assignment", "--hex", FUTURE),
            f"version {LATER}, which this reader does not know",
        ),
        (("--hex", FUTURE), "--kind subscription or --kind assignment"),
        (("--kind", "subscription"), "exactly one of --hex, --file and --jsonl"),
        (("--kind", "subscription", "--hex", "00", "--jsonl", "-"), "exactly one of"),
        (("--kind", "subscription", "--file", "no/such/file"), "No such file"),
    ],
)
def test_invalid_input_is_one_sentence_on_stderr_and_status_2(arguments, message):
    result = call(decode, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(codec, "LINE_LIMIT", 10)
    result = call(decode, "--kind", "subscription", "--file", "-", stdin=b"0" * 11)
    assert result.exit_code == 2
    assert "more than 10 bytes" in result.stderr


def test_each_question_gets_one_answer_in_order_with_its_id():
    data = encode_assignment(ANSWER)
    answers = ask(
        decode,
        {"id": 7, "kind": "subscription", "hex": FUTURE},
        {"kind": "assignment", "hex": data.hex() + "beef"},
        {"id": None, "kind": "assignment", "hex": FUTURE},
    )
    assert answers[0] == {"id": 7, "fields": {"version": LATER, "latest_supported": LATER + 1}}
    assert answers[1] == {"fields": assignment_to_fields(ANSWER)}
    assert answers[2]["id"] is None
    assert f"version {LATER}" in answers[2]["error"]


def test_an_invalid_question_is_answered_with_an_error_and_the_stream_continues():
    answers = ask(
        decode,
        '{"kind": ',
        "[]",
        "",
        b"\xff\xfe\xff",
        "[" * 100_000,
        '{"id": 1, "hex": ' + "9" * 5000 + "}",
        {"id": 2},
        {"id": 3, "kind": "subscription", "hex": 5},
        {"id": 4, "kind": "subscription", "hex": "zz"},
        {"id": 5, "kind": "other", "hex": ""},
        {"id": 6, "kind": "subscription", "hex": FUTURE},
    )
    errors = [answer.get("error", "") for answer in answers]
    assert errors[0].startswith("line 1 column 10: not JSON")
    assert errors[1] == "line 2 column 1: not a JSON object"
    assert errors[2].startswith("line 3 column 1: not JSON")
    assert errors[3].startswith("line 4 column 1: not JSON")
    assert errors[4].startswith("line 5 column 1: not JSON")
    assert errors[5].startswith("line 6 column 1: not JSON")
    assert [answer.get("id") for answer in answers[6:]] == [2, 3, 4, 5, 6]
    assert all(errors[:-1])
    assert not errors[-1]


def test_a_line_that_is_too_long_is_skipped_without_holding_it(monkeypatch):
    monkeypatch.setattr(codec, "LINE_LIMIT", 60)
    short = {"id": 1, "kind": "subscription", "hex": FUTURE}
    answers = ask(decode, "x" * 1000, short, "y" * 61)
    assert [answer.get("id") for answer in answers] == [None, 1, None]
    assert answers[0]["error"] == "line 1 is longer than 60 bytes; split it"
    assert answers[2]["error"] == "line 3 is longer than 60 bytes; split it"


def test_encode_answers_with_hex_and_takes_what_decode_printed():
    fields = assignment_to_fields(ANSWER)
    answers = ask(
        encode,
        {"id": 1, "kind": "assignment", "version": 11, "latest_supported": 11, "fields": fields},
        {"kind": "assignment", "version": 4, "latest_supported": 5, "fields": {}},
        {"kind": "subscription", "version": 11, "fields": {"prev_tasks": [[0, 1, None]]}},
        {"kind": "subscription", "fields": {"version": 3, "latest_supported": 4}},
    )
    assert answers[0] == {"id": 1, "hex": encode_assignment(ANSWER).hex()}
    assert answers[1]["hex"].startswith("0000000400000005")
    assert answers[2]["hex"].startswith(f"0000000b{NEWEST:08x}")
    assert answers[3]["hex"].startswith("0000000300000004")


def test_encode_reports_what_it_cannot_write_and_continues():
    answers = ask(
        encode,
        {"id": 1, "kind": "assignment", "version": 99},
        {"id": 2, "kind": "assignment", "version": 1, "fields": []},
        {"id": 3, "kind": "subscription", "version": 11, "fields": {"unique_field": 300}},
        {"id": 4, "kind": "assignment"},
        {"id": 5, "kind": "assignment", "version": 1},
    )
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4, 5]
    assert all("error" in answer for answer in answers[:-1])
    assert "unique_field = 300 in version 11" in answers[2]["error"]
    assert answers[4]["hex"] == "000000010000000000000000"


@pytest.mark.usefixtures("clock")
def test_answers_are_flushed_one_by_one():
    """A program sends a question, waits for the answer, and sends the next one."""
    code = "from assignor.cli import main; main()"
    command = [sys.executable, "-c", code, "decode", "--jsonl", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        for number in range(3):
            question = {"id": number, "kind": "subscription", "hex": FUTURE}
            child.stdin.write(json.dumps(question).encode() + b"\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["id"] == number
        child.stdin.close()
        assert child.wait(timeout=120) == 0


MEMBER = Subscription(
    version=3,
    latest_supported_version=11,
    process_id=UUID(int=7),
    client_tags={"zone": "a"},
    native=NativeSubscription(sizes=(2,), rack="r1"),
)


def native_member(version):
    return replace(MEMBER, version=version, latest_supported_version=version)


def test_a_trailer_is_listed_with_its_keys():
    result = call(decode, "--kind", "subscription", "--hex", encode_subscription(MEMBER).hex())
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["offset", "size", "key", "type", "field", "value", "meaning"]
    rows = [line.split() for line in lines]
    assert ["5", "text", "trailer.rack", '"r1"'] in [row[2:6] for row in rows]
    assert any(row[2:4] == ["magic", "trailer"] for row in rows)
    assert "trailing bytes" not in result.stdout


def test_native_bodies_are_listed_and_keys_of_later_ones_are_unknown(monkeypatch):
    for version in (101, 102, 103):
        data = encode_subscription(native_member(version)).hex()
        result = call(decode, "--kind", "subscription", "--hex", data)
        assert result.exit_code == 0
        assert "texts_by_name" in result.stdout
        assert ("key 25 (unknown)" in result.stdout) is (version == 103)
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "160")):
        monkeypatch.setenv(name, value)
    assert "┃ key" in call(decode, "--kind", "subscription", "--hex", data).stdout


def test_an_answer_for_later_readers_is_listed_but_is_no_value():
    answer = Assignment(version=103, commonly_supported_version=103, active_tasks=(TaskId(0, 1),))
    data = encode_assignment(answer).hex()
    assert "key 17 (unknown)" in call(decode, "--kind", "assignment", "--hex", data).stdout
    result = call(decode, "--kind", "assignment", "--hex", data, "--format", "json")
    assert result.exit_code == 2
    assert "version 103, which this reader does not know" in result.stderr


def test_an_invalid_native_body_is_one_sentence_that_names_the_key():
    data = "0000006500000065" + "8104a132"
    for format_ in ("text", "json"):
        result = call(decode, "--kind", "subscription", "--hex", data, "--format", format_)
        assert result.exit_code == 2
        assert "key 4 (threads, count): str instead of int" in result.stderr


def test_the_native_part_goes_through_json_and_back():
    for value in (MEMBER, native_member(101)):
        data = encode_subscription(value).hex()
        fields = ask(decode, {"kind": "subscription", "hex": data})[0]["fields"]
        assert fields["native"]["rack"] == "r1"
        assert ask(encode, {"kind": "subscription", "fields": fields})[0] == {"hex": data}
    assert "native" not in ask(decode, {"kind": "subscription", "hex": TAGGED})[0]["fields"]


def test_encode_fills_in_the_latest_version_of_the_family_that_is_asked_for():
    answers = ask(
        encode,
        {"kind": "subscription", "version": 3, "fields": {"native": {}}},
        {"kind": "subscription", "version": 101},
        {"kind": "assignment", "version": 102},
        {"kind": "subscription", "version": 101, "fields": {"native": {"threads": -1}}},
        {"kind": "subscription", "version": "3"},
    )
    assert answers[0]["hex"].startswith(f"00000003{NEWEST:08x}")
    assert answers[1]["hex"].startswith("0000006500000065")
    assert answers[2]["hex"].startswith("0000006600000066")
    assert "threads = -1 in version 101" in answers[3]["error"]
    assert "error" in answers[4]
