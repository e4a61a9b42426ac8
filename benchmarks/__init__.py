"""Scripts that measure; they print and save records and are no part of the package's API."""
