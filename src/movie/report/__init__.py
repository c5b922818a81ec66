"""Comparisons as people and scripts read them: a terminal table, one JSON document, one HTML page."""
