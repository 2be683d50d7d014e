"""Artifacts and graphs for research, which causerie finds by this module's place."""
