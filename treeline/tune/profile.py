"""A tuned profile: what `treeline tune` chose for a scene on an adapter, as a JSON file.

{
  "schema": 1, "kind": "treeline-tuned",
  "context": {...}         as in reports: adapter, driver, scene, its hash, what was asked for
  "build": {...}           all fields of BuildOptions
  "kernels": {"shadow": {"sort": "on", "loops": "frame", "stack": "16"}}    ray types changed
  "confirmed": {...}       the gain in a process of its own; null where the default is kept
  "evidence": {...}        what was tried, what was equal, what won
  "explained": ["..."]     the same in sentences
}
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bvh.blas import BuildOptions
from engine.gpu.errors import UserError
from passes.ray_kernel import RayKernel
from passes.rays import RAY_TYPES
from treeline.tune.cases import Case, Kernels, build_text, kernels_text

SCHEMA = 1
KIND = "treeline-tuned"
# What a profile is of, by the context's key and as a refusal calls it.
BELONGS = {"scene_sha256": "scene", "adapter": "adapter", "group": "grouping"}


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
        base = BuildOptions()
        set_by = {
            "profile": self.path.name,
            **self.case.facts(),
            "text": f"build {build_text(self.case.build, base)}; kernels "
            f"{kernels_text(self.case.kernels)}",
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
    if data.get("schema") != SCHEMA:
        raise UserError(f"{path}: schema {data.get('schema')!r}, not {SCHEMA}")
    try:
        build = BuildOptions(**data["build"])
        kernels = {name: RayKernel(**fields) for name, fields in data["kernels"].items()}
        context = dict(data["context"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: damaged profile ({error})") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    known = [ray.name for ray in RAY_TYPES]
    for name in kernels:
        if name not in known:
            raise UserError(f"{path}: no ray type is named '{name}'; there are {', '.join(known)}")
    return TunedProfile(path, Case.of(build, kernels), context, data)


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
        "build": asdict(case.build),
        "kernels": {name: asdict(kernel) for name, kernel in case.kernels},
        "confirmed": None if confirmed is None else dict(confirmed),
        "evidence": dict(evidence),
        "explained": explained,
    }
