"""Passes that take a neutral tree and return a better or wider one."""
