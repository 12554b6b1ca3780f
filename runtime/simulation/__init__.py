"""Whole groups in virtual time: the real rules, under everything that can go wrong."""
