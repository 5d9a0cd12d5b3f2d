"""Requests with newer versions that name topics by id are not negotiated by accident (KIP-516)."""

import ast
from importlib.resources import files
from pathlib import Path

import assignor

SCHEMAS = files("kafka.protocol.schemas.resources")
WITH_IDS = {
    path.name.removesuffix(".json")
    for path in SCHEMAS.iterdir()
    if path.name.endswith("Request.json") and '"uuid"' in path.read_text(encoding="utf-8")
}


def built_requests():
    """(file:line, name, names of keywords) of every request that the adapters build."""
    for path in sorted((Path(assignor.__file__).parent / "adapters").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                keywords = {keyword.arg for keyword in node.keywords}
                yield f"{path.name}:{node.lineno}", node.func.id, keywords


def test_a_request_that_may_name_topics_by_id_has_its_newest_version():
    assert {"MetadataRequest", "OffsetCommitRequest", "OffsetFetchRequest"} <= WITH_IDS
    found = [(place, keys) for place, name, keys in built_requests() if name in WITH_IDS]
    assert len(found) > 3
    assert [place for place, keys in found if "max_version" not in keys] == []
