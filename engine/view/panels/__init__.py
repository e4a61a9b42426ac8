"""Widgets that more than one panel draws: tables, trees, histories, legends, options."""
