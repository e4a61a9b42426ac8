"""Settings between runs: kept whole, and never a reason not to start."""

import json
import os
from pathlib import Path

import pytest

from engine.view.settings import FILE_NAME, Settings, config_folder

DEFAULTS = {"size": (960, 540), "scale": 1.0, "panels": True, "scene": "", "last": None, "n": 3}


def stored(folder: Path) -> Path:
    return folder / FILE_NAME


def test_round_trip(tmp_path: Path) -> None:
    kept = Settings(DEFAULTS, tmp_path / "deeper" / "still")
    assert kept.load() is None
    kept["size"] = (800, 600)
    kept["scene"] = "höhle.glb"
    kept["scale"] = 1.5
    assert kept.save() is None
    again = Settings(DEFAULTS, tmp_path / "deeper" / "still")
    assert again.load() is None
    assert again.values == kept.values
    assert isinstance(again["size"], tuple)
    assert os.listdir(again.path.parent) == [FILE_NAME], "no part of it is left behind"


def test_unknown_keys_are_kept_out(tmp_path: Path) -> None:
    stored(tmp_path).write_text(json.dumps({"scale": 2, "evil": 1}))
    kept = Settings(DEFAULTS, tmp_path)
    assert kept.load() is None
    assert kept["scale"] == 2 and "evil" not in kept.values
    with pytest.raises(KeyError):
        kept["evil"] = 1


@pytest.mark.parametrize("text", ["", "{", "[1]", "nul", '{"scale": "x"}', "[" * 100_000, "\x00"])
def test_damaged_file_gives_defaults_and_a_line(tmp_path: Path, text: str) -> None:
    stored(tmp_path).write_text(text)
    kept = Settings(DEFAULTS, tmp_path)
    message = kept.load()
    assert message and "\n" not in message and str(tmp_path) in message
    assert kept.values == DEFAULTS


@pytest.mark.parametrize(
    "key, value", [("panels", 1), ("scale", True), ("n", 1.5), ("size", "ab"), ("scene", 3)]
)
def test_wrong_kinds_keep_the_default(tmp_path: Path, key: str, value: object) -> None:
    stored(tmp_path).write_text(json.dumps({key: value, "scale" if key != "scale" else "n": 7}))
    kept = Settings(DEFAULTS, tmp_path)
    message = kept.load()
    assert message and key in message
    assert kept[key] == DEFAULTS[key]
    assert 7 in kept.values.values(), "the others are used"


def test_unwritable_folder_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Settings(DEFAULTS, tmp_path / "file" / "folder")
    message = kept.save()
    assert message and "\n" not in message
    assert kept.load() is not None or kept.values == DEFAULTS


def test_value_that_is_no_json_is_said(tmp_path: Path) -> None:
    kept = Settings(DEFAULTS, tmp_path)
    assert kept.save() is None
    kept["last"] = float("nan")
    assert kept.save()
    assert Settings(DEFAULTS, tmp_path).load() is None, "the file from before is whole"


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Settings(DEFAULTS, tmp_path)
    kept.save()
    before = stored(tmp_path).read_text()

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", refuse)
    kept["n"] = 9
    message = kept.save()
    assert message and "no space left" in message
    assert stored(tmp_path).read_text() == before
    assert os.listdir(tmp_path) == [FILE_NAME]


def test_folder_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELINE_CONFIG", str(tmp_path))
    assert config_folder() == tmp_path
    assert Settings(DEFAULTS).path == tmp_path / "view.json"
    monkeypatch.delenv("TREELINE_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert config_folder() == tmp_path / "config" / "treeline"
