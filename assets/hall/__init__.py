"""The hall: the embedded scene, made from code alone. `layout.py` is the place to start reading."""
