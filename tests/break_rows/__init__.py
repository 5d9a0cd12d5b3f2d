"""Breaks of the product's code, one or more for every row of the ledger."""
