"""Ratings: predict them, follow them over time, and estimate what user signals cost."""
