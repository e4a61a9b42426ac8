"""Treeline behind other libraries' interfaces: one module a library."""
