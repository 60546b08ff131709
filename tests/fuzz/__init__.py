"""Damaged folders and files: refused in words, or read as an independent reader reads them."""
