"""Every mistake in a scene file is one line that names the place."""

from pathlib import Path
from typing import Any

import pytest

from engine.gpu.errors import UserError
from engine.scene.load import load_scene

ONE = '[files]\none = "one.glb"\n[[objects]]\nfile = "one"\n'
BITS = {"primary": 1, "reflection": 2, "shadow": 4}
DISC = 'scatter = {count = 2, area = {shape = "disc", radius = 1}'


@pytest.mark.parametrize(
    "text, words",
    [
        ("files = 3", ["files is 3, not a table"]),
        ("[files", ["not a TOML file"]),
        ('[files]\none = "one.glb"', ["objects is missing"]),
        ('[files]\none = 1\n[[objects]]\nfile = "one"', ["files.one is 1, not a text"]),
        ('[files]\none = "gone.glb"\n[[objects]]\nfile = "one"', ["'gone.glb'", "no such file"]),
        ('[files]\no = "scene.toml"\n[[objects]]\nfile = "o"', ["files.o", "not a model file"]),
        ('[files]\none = "one.glb"\n[[objects]]\nfile = "on"', ["objects[0].file", "mean one?"]),
        ('[files]\none = "one.glb"\n[[objects]]\n', ["objects[0].file is missing: a text"]),
        (ONE + ONE.partition("\n[[")[2].join(["[[", ""]), ["objects[1]", "'one' a second time"]),
        (ONE + 'name = "a/b"', ["name", "without / and #"]),
        (ONE + "scael = 2", ["objects[0].scael is no key", "mean scale?"]),
        ("[camra]\n" + ONE, ["camra is no key here", "mean camera?"]),
        (ONE + "scale = 0", ["objects[0] 'one'.scale is 0"]),
        (ONE + "scale = -0.0", ["scale is 0"]),
        (ONE + "scale = [1, 0, 1]", ["scale is 0"]),
        (ONE + "scale = nan", ["scale is nan, not a finite number"]),
        (ONE + "scale = true", ["scale is true, not a finite number"]),
        (ONE + "scale = 1e300", ["scale", "32-bit"]),
        (ONE + "translation = [1, 2]", ["translation is [1, 2], not 3 finite numbers"]),
        (ONE + "translation = [1, 2, inf]", ["translation", "3 finite numbers"]),
        (ONE + "rotation = [0, 0, 0, 0]", ["rotation has length 0"]),
        (ONE + "rotation = [0, 0, 0, 1]\neuler = [0, 0, 0]", ["euler stands beside rotation"]),
        (ONE + "matrix = 3", ["matrix is not 4 rows"]),
        (ONE + "matrix = [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,1,1]]", ["last row"]),
        (ONE + "matrix = [[1,0,0,0],[0,1,0,0],[1,1,0,0],[0,0,0,1]]", ["matrix is singular"]),
        (ONE + "matrix = [[1,0,0,0],[0,1,0],[0,0,1,0],[0,0,0,1]]", ["matrix.1 is [0, 1, 0]"]),
        (ONE + "scale = 2\nmatrix = []", ["scale stands beside matrix"]),
        (ONE + "mask = 256", ["mask is 256", "from 0 to 255"]),
        (ONE + "mask = 1.0", ["mask is 1.0, not a whole number"]),
        (ONE + 'visible_to = ["shade"]', ["visible_to", "primary, reflection, shadow"]),
        (ONE + "visible_to = []\nmask = 1", ["visible_to stands beside mask"]),
        (ONE + 'lifetime = "statc"', ["lifetime is 'statc'", "mean static?"]),
        (ONE + 'node = "nod"', ["node is 'nod', which its file lacks", "mean node?"]),
        (ONE + 'mesh = "try"', ["mesh is 'try'", "mean tri?"]),
        (ONE + 'node = "node"\nmesh = "tri"', ["mesh stands beside node"]),
        (ONE + 'clip = "Walk"', ["clip is 'Walk', which its file lacks"]),
        (ONE + "animate = false\nspeed = 2", ["speed", "animate is false"]),
        (ONE + "speed = 1e9", ["speed", "from -1000 to 1000"]),
        (ONE + "loop = 1", ["loop is 1, not true or false"]),
        (ONE + "instances = [3]", ["instances[0] is 3, not a table"]),
        (ONE + "instances = [{scale = 0}]", ["instances[0].scale is 0"]),
        (ONE + "instances = []", ["places no triangle"]),
        (ONE + DISC.replace("2", "-1") + "}", ["scatter.count is -1", "from 0 to 1,048,576"]),
        (ONE + DISC + ", seeds = 3}", ["scatter.seeds", "mean seed?"]),
        (ONE + DISC + ", least_distance = 5}", ["scatter has room for 1 of 2"]),
        (ONE + DISC + ", scale = [2, 1]}", ["scatter.scale is [2, 1], not a lower"]),
        (ONE + DISC + ", scale = [0, 1]}", ["scatter.scale", "from 1e-09"]),
        (ONE + DISC + ', exclude = [{shape = "ring", inner = 2, outer = 1}]}', ["outer is 1"]),
        (ONE + DISC + ', exclude = [{shape = "disc", size = [1, 1]}]}', ["exclude[0].size"]),
        (ONE + 'scatter = {count = 1, area = {shape = "disk"}}', ["mean disc?"]),
        (ONE + "scatter = {count = 1}", ["scatter.area is missing"]),
        (ONE + "[camera]\nposition = [0, 0, 0]", ["camera.target is missing"]),
        (ONE + '[camera]\nobject = "on"', ["camera.object is 'on'", "mean one?"]),
        (ONE + '[camera]\nobject = "one"', ["camera.object is 'one', and nothing"]),
        (ONE + '[camera]\nobject = "one"\nfov = 3', ["camera.fov stands beside object"]),
        (ONE + "[camera]\nposition = [0, 5, 0]\ntarget = [0, 0, 0]", ["camera.target is at"]),
        (ONE + "[camera]\nposition = [0,5,1]\ntarget = [0,0,0]\nfov = 180", ["from 1 to 179"]),
        (ONE + "[camera_path]\nkeys = []", ["camera_path.keys is missing"]),
        (ONE + "[camera_path]\nkeys = [{time = 1}]", ["keys[0].position is missing"]),
        (
            ONE
            + "[camera_path]\nkeys = [{time = 1, position = [1, 0, 0], target = [0, 0, 0]},"
            + "{time = 1, position = [1, 0, 0], target = [0, 0, 0]}]",
            ["camera_path.keys[1].time is 1, not after the 1"],
        ),
        (
            ONE + "[[lights]]\ncenter = [0,0,0]\ntarget = [0,0,0]\nsize = [1,1]\nradiance = 1",
            ["lights[0].target is the center"],
        ),
        (
            ONE + "[[lights]]\ncenter = [0,1,0]\ntarget = [0,0,0]\nsize = [1,0]\nradiance = 1",
            ["lights[0].size is 0"],
        ),
        (
            ONE + "[[lights]]\ncenter = [0,1,0]\ntarget = [0,0,0]\nsize = [1,1]\nradiance = -1",
            ["lights[0].radiance is -1", "from 0"],
        ),
        (ONE + "[environment]\nzenith = 1", ["environment.horizon is missing"]),
    ],
)
def test_every_mistake_is_one_line(scene_file: Any, text: str, words: list[str]) -> None:
    path = scene_file(text)
    with pytest.raises(UserError) as caught:
        load_scene(path, None, BITS)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message and message.startswith(str(path)), message
    for word in words:
        assert word in message, message


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "scene.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not a TOML file"):
        load_scene(path)
