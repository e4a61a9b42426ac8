"""A tuned profile: what `treeline tune` chose for a scene on an adapter, as a JSON file.

{
  "schema": 2, "kind": "treeline-tuned",
  "context": {...}         as in reports: adapter, driver, scene, its hash, what was asked for
  "group": "all"           how meshes are grouped (passes/grouping.py)
  "build": {...}           all fields of BuildOptions
  "kernels": {"shadow": {"sort": "on", "loops": "frame", "stack": "16"}}    ray types changed
  "confirmed": {...}       the gain in a process of its own; null where the default is kept
  "evidence": {...}        what was tried, what was equal, what won
  "explained": ["..."]     the same in sentences
}

Files of schema 1 had no group: theirs is the one that they were tuned for, the context's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from passes.grouping import GROUPS
from passes.ray_kernel import RayKernel
from passes.rays import RAY_TYPES
from treeline.tune.cases import Case, Kernels, Recipe

SCHEMA = 2
WITHOUT_GROUP = 1  # the schema before
KIND = "treeline-tuned"
# What a profile is of, by the context's key and as a refusal calls it.
BELONGS = {"scene_sha256": "scene", "adapter": "adapter"}


@dataclass(frozen=True, slots=True)
class TunedProfile:
    """`context` and `document` are the file's."""

    path: Path
    case: Case
    context: Mapping[str, Any]
    document: Mapping[str, Any]

    @property
    def kernels(self) -> Kernels:
        return dict(self.case.kernels)

    def mismatch(self, here: Mapping[str, Any]) -> str | None:
        """Why it is not a profile of what is `here` (keys of BELONGS), in a line; None where it
        is."""
        for key, label in BELONGS.items():
            if self.context.get(key) != here[key]:
                was, now = (str(c.get(key))[:24] for c in (self.context, here))
                return f"{self.path} was tuned for another {label} ({was}, here {now})"
        return None

    def facts(self, anyway: str | None = None) -> dict[str, Any]:
        """What a report says that it set; `anyway` what did not fit."""
        set_by = {
            "profile": self.path.name,
            **self.case.facts(),
            "text": self.case.text(Recipe(BuildOptions())),
        }
        return {"tuned": set_by | ({"mismatch": anyway} if anyway else {})}


def read_profile(path: Path) -> TunedProfile:
    """UserError, one line, for a file that is missing or no such profile."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise UserError(f"{path} is no tuned profile: `treeline tune` writes them")
    schema = data.get("schema")
    if schema not in (SCHEMA, WITHOUT_GROUP):
        raise UserError(f"{path}: schema {schema!r}, not {SCHEMA}: tune anew")
    try:
        build = BuildOptions(**data["build"])
        group = (data if schema == SCHEMA else data["context"])["group"]
        kernels = {name: RayKernel(**fields) for name, fields in data["kernels"].items()}
        context = dict(data["context"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: damaged profile ({error})") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    if group not in GROUPS:
        raise UserError(f"{path}: unknown group '{group}', there are {', '.join(GROUPS)}")
    known = [ray.name for ray in RAY_TYPES]
    for name in kernels:
        if name not in known:
            raise UserError(f"{path}: no ray type is named '{name}'; there are {', '.join(known)}")
    return TunedProfile(path, Case.of(Recipe(build, group), kernels), context, data)


def profile_document(
    case: Case,
    context: Mapping[str, Any],
    confirmed: Mapping[str, Any] | None,
    evidence: Mapping[str, Any],
    explained: list[str],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "context": dict(context),
        **case.facts(),
        "confirmed": None if confirmed is None else dict(confirmed),
        "evidence": dict(evidence),
        "explained": explained,
    }
