"""Generators of the printed pages under docs/, one module a page: ``render() -> str``."""
