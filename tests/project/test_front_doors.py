"""The import contract of front doors, on an import graph made by hand."""

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
        (("app.a.one", "app.b"), {}),
        (("app.a.one", "app.a.two"), {}),
        (("app.a.deep.one", "app.a.two"), {}),
        (("app.a", "app.a.two"), {}),
        (("app.a.one", "app.errors"), {}),
        (("app.a.one", "app.b.two"), {"doors": ["app.b.two"]}),
        (("app.a.one", "app.b.two"), {"insiders": ["app.a"]}),
        (("app.a.one", "app.b.inner"), {}),
        (("app.a.x.one", "app.a.y.two"), {}),
    ],
)
def test_front_doors_siblings_and_named_exceptions_are_kept(imports, options):
    extra = (("app.b.inner.leaf", "app.b.inner.other"),)
    assert verdict(imports, *extra, **options).kept


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
    checked = verdict(imports, **options)
    assert not checked.kept
    assert checked.metadata["broken"] == [imports]
