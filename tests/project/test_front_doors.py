"""The import contract of front doors can fail, on an import graph made by hand."""

import grimp
import pytest

from tests.project.front_doors import FrontDoors


def verdict(*imports, **options):
    graph = grimp.ImportGraph()
    for module in {part for pair in imports for part in pair} | {"app.a", "app.b", "app.b.inner"}:
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            graph.add_module(".".join(parts[:end]))
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    contract = FrontDoors(
        name="doors",
        session_options={"root_packages": ["app"]},
        contract_options={name: list(values) for name, values in options.items()},
    )
    return contract.check(graph, verbose=False)


@pytest.mark.parametrize(
    ("imports", "options"),
    [
        (("app.a.one", "app.b.two"), {}),
        (("app.a.one", "app.b.inner.leaf"), {}),
        (("app", "app.b.two"), {}),
        (("app.ab.one", "app.a.two"), {}),
        (("app.a.x.one", "app.a.y.two"), {"nested": ["app.a"]}),
    ],
)
def test_a_module_inside_another_sub_package_breaks_the_contract(imports, options):
    kept = (("app.a.one", "app.b"), ("app.c.deep.one", "app.c.two"))
    checked = verdict(imports, *kept, **options)
    assert not checked.kept
    assert checked.metadata["broken"] == [imports]
