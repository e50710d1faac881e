"""Sorts on CPU drivers: long rows run by run, short rows by merging."""
