"""One web application of several rooms: scores on request, an explorer, annotation.

Importing this package imports no web framework; `causerie.server.app` explains how rooms plug in.
"""
