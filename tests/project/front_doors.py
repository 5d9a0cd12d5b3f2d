"""A contract for import-linter: other code imports a sub-package through its package.

Packages are the front doors: ``from assignor.placement import GroupState`` is kept from elsewhere,
``from assignor.placement.state import GroupState`` is not. Modules of one sub-package import each
other directly. A module right below a top-level package (``assignor.errors``) is its own front
door.
"""

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

_SUB_PACKAGE_DEPTH = 2


class FrontDoors(Contract):
    """No module imports a module inside of another sub-package.

    Options:
        doors: modules that count as front doors although they are no packages.
        insiders: sub-packages that may import any module.
        nested: packages whose folders each count as a sub-package.
    """

    doors = fields.SetField(subfield=fields.StringField(), required=False)
    insiders = fields.SetField(subfield=fields.StringField(), required=False)
    nested = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001 the signature of import-linter
        """Compare each import with the rule."""
        roots = {str(root) for root in self.session_options["root_packages"]}
        broken = [
            (importer, imported)
            for importer in sorted(graph.modules)
            if importer.split(".")[0] in roots and self._unit(importer) not in self._set("insiders")
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if imported.split(".")[0] in roots and self._is_inside(graph, importer, imported)
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each import with the package to use instead."""
        for importer, imported in check.metadata["broken"]:
            door = imported.rpartition(".")[0]
            output.print_error(f"{importer} imports {imported}: import from {door} instead")

    def _is_inside(self, graph: ImportGraph, importer: str, imported: str) -> bool:
        return (
            imported.count(".") >= _SUB_PACKAGE_DEPTH
            and not graph.find_children(imported)
            and imported not in self._set("doors")
            and not importer.startswith(f"{self._unit(imported)}.")
            and importer != self._unit(imported)
        )

    def _unit(self, module: str) -> str:
        parts = module.split(".")
        top = ".".join(parts[:_SUB_PACKAGE_DEPTH])
        return ".".join(parts[: _SUB_PACKAGE_DEPTH + 1]) if top in self._set("nested") else top

    def _set(self, name: str) -> set[Any]:
        return getattr(self, name) or set()
