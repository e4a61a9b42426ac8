"""The numbers in README.md are those of the committed records."""

import json

from benchmarks.committed_records import RECORDS, ROOT
from benchmarks.quality_tables import PAGE, page
from benchmarks.readme_tables import paste


def test_the_readme_says_what_the_records_say() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert paste(text) == text, "run python -m benchmarks.readme_tables"


def test_the_page_of_options_says_what_the_records_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m benchmarks.quality_tables"


def test_a_changed_number_would_be_noticed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert paste(text.replace("Mrays/s |", "Mrays/s | 9", 1)) == text


def test_every_record_states_where_it_was_measured() -> None:
    for path in RECORDS.glob("*.json"):
        context = json.loads(path.read_text(encoding="utf-8"))["context"]
        for name in ("adapter", "driver", "commit"):
            assert context.get(name), f"{path.name} does not state its {name}"
