"""One web application of several rooms: scores on request, an explorer, annotation.

Importing this imports no web framework; `causerie.server.app` says how a room plugs in.
"""
