"""Generators of pages under docs/, one module per page: ``render() -> str``."""
