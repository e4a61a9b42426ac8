"""Declarations of options, a file an idea; passes/option_list.py joins them."""
