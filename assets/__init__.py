"""Scenes that the project made itself, with the generators that made them."""
