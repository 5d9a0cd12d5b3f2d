"""docs/start-upgrade.md quotes what the commands say."""

import json
import re

from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.plan import make_plan, plan_lines
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/start-upgrade.md").read_text(encoding="utf-8")
SAVED = {
    "name": "g",
    "topics": {"orders": {"partitions": 1}},
    "subtopologies": {"0": {"sources": ["orders"]}},
    "clients": {"a": {"active": ["0_0"], "versions": [{"releases": ["2.3.1"]}]}},
}


def test_the_message_about_a_wrong_release_is_the_one_of_the_command(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    words = ["plan", "--from", "3.1.2", "--to", "4.4", "--problem", str(file)]
    (quoted,) = re.findall(r"^\| `([^`]*of the group[^`]*)` \|", PAGE, re.MULTILINE)
    assert quoted in CliRunner().invoke(main, words).stderr


def test_the_page_and_the_plan_wait_for_the_same():
    wait = "wait after each until the group is Stable and its lag has fallen"
    plan = "\n".join(plan_lines(make_plan(find_release("2.3.1"), find_release("4.4"))))
    assert plan.count(wait) == 3
    steps = re.findall(r"^step \d: bounce .*", PAGE, re.MULTILINE)
    assert len(steps) == 3
    assert all(step.endswith(wait) for step in steps)
    assert "until it is stable" not in PAGE
