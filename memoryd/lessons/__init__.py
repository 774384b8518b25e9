"""Lessons: what failed, what fixed it, and whether telling anyone helped.

observe → reflect → causal → gate → plan → ledger → settlement. In: paired calls and results. Out: lessons with
labels, the block's part that shows them, and figures of which every one was observed.
"""
