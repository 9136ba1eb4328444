"""Vega-Altair charts: rows in, Vega-Lite specifications out."""
