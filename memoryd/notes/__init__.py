"""The owner's notes: Markdown files whose label is the folder they lie in, edited only through one check.

In: edits, from agents, brokers, `bxctl`. Out: checked files, and a journal line for each.
"""
