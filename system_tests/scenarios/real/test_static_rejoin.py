"""Static members before 2.6 cannot ask for a rebalance: they get their old assignment.

They unsubscribe and subscribe again (KAFKA-9525). A dynamic member leaves the group and
joins again; a static one keeps its place, without a rebalance.
"""

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

OLD, NEWER = "2.0.1", "2.3.1"
MANY = 5
STATIC = {"group.instance.id": "newer"}
ASKS = "Sent a version 4 subscription and got version 3 assignment back"
LAST_JOIN = "Successfully joined group with generation 3"


@pytest.mark.nightly("released programs, which do not change; 12 s each")
@pytest.mark.parametrize("settings", [{}, STATIC], ids=["dynamic", "static"])
def test_the_last_version_change_of_a_static_leader_never_comes(
    word_count_on, kafka_3_9, tmp_path, settings
):
    """`explore` calls it 'settles', KAFKA-9525; a dynamic member writes the newer version."""
    group = word_count_on(kafka_3_9)
    group.start("newer", NEWER, settings=settings)
    group.settle()
    group.start("old", OLD)
    group.wait("the lower version", lambda: dict(group.settle().used_versions)["newer"] == 3)
    group.stop("old")
    if not settings:
        assert dict(group.settle().used_versions) == {"newer": 4}
        return
    log = tmp_path / "newer" / "log"
    group.wait("the last bounce", lambda: LAST_JOIN in log.read_text(encoding="utf-8"))
    before = log.read_text(encoding="utf-8").count(ASKS)
    group.wait("many requests", lambda: log.read_text(encoding="utf-8").count(ASKS) > before + MANY)
    assert "generation 4" not in log.read_text(encoding="utf-8")
