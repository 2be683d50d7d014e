"""Annotation by people: causal relations as for CGDIALOG+, and judgements of any kind.

A project has items, people and rounds; what people do is a log of events that only grows. This
room knows nothing of the web: `causerie.server.annotate` shows it.
"""
