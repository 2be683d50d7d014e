"""Ratings: predict what users would have rated, follow it over time, say what cost them."""
