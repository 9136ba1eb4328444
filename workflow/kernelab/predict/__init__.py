"""Predict how fast a configuration runs on a card, with no GPU: used to order a search, never to fill a measured column."""
