"""Figures for plain and safe sessions, from the same timelines in one run: ``python -m benchmarks``."""
