"""Human annotation: causal relations as in CGDIALOG+, and judgements of any kind.

A project has items, people and rounds; what people do is an append-only log of events. This
package does not depend on the web: `causerie.server.annotate` is its user interface.
"""
