"""Chaos: a seeded run that breaks things under memoryd and holds it against a short oracle.

``make chaos`` runs every part; docs/chaos.md says what is injected, what is compared, and how to repeat a run.
"""
