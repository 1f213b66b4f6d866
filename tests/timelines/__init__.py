"""Timelines that nobody thought of: drawn by Hypothesis, played on real sessions, judged by what tools did.

python -m tests.timelines --timelines 20000    draws that many; one that fails shrinks to a file, which
python -m examples.restaurant replay FILE      plays
python -m tests.timelines.broken               breaks the package on purpose: do the properties notice?
"""
