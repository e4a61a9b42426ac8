"""From a command's scene to a profile: search, confirmation and what is written of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bvh.gpu.default_kernel import default_kernel
from engine.gpu.device import Device
from engine.gpu.errors import LimitError
from engine.scene.scene import Scene
from passes.frame_options import FrameOptions
from passes.grouping import group_members, traced_triangles
from passes.prepare import PreparedScene
from treeline.cli.console import note
from treeline.measure import Progress
from treeline.report_context import plain, structure_context
from treeline.shared_builds import SharedBuilds
from treeline.tune.blocks import Block
from treeline.tune.cases import AXES, GROUP, Case, Recipe
from treeline.tune.confirm import confirm_apart
from treeline.tune.explain import evidence, sentences
from treeline.tune.journal import Journal, journal_path, sources
from treeline.tune.measure import FrameMeasurer
from treeline.tune.profile import profile_document
from treeline.tune.search import Search
from treeline.tune.visibility import compare_visibility

if TYPE_CHECKING:
    from treeline.cli.options import Common

STRUCTURES = 6  # that are kept: the default's, the best so far and those of a block
# Of a structure that is tried at all, as the default's bytes a triangle say: copies of shared
# meshes may take any number of times the default's, and as long to build.
MOST_BYTES = 1 << 30


@dataclass(slots=True)
class Subject:
    """A scene's frame on a device. `turns`: of the first race, of the decision, of the
    confirmation, and ms of warm-up a block."""

    common: "Common"
    device: Device
    scene: Scene
    options: FrameOptions
    pose: Mapping[str, Any]
    turns: tuple[int, int, int, float]
    progress: Progress
    _builds: SharedBuilds | None = None

    @property
    def default(self) -> Case:
        return Case(Recipe(self.common.build_options(), self.common.group))

    def same_groups(self) -> dict[str, str]:
        """Groupings that merge what another one merges -> that one: the default's, or an earlier
        one of AXES."""
        first = self.default.recipe.group
        by_members: dict[tuple[int, ...], str] = {}
        for group in dict.fromkeys((first, *AXES[GROUP])):
            by_members.setdefault(tuple(group_members(self.scene, group)), group)
        found = {
            group: by_members[tuple(group_members(self.scene, group))] for group in AXES[GROUP]
        }
        return {group: same for group, same in found.items() if group != same}

    def context(self) -> dict[str, Any]:
        """As a report's."""
        common, frame = self.common, self.options
        context = structure_context(
            self.scene, common.scene_name, self.device, common.build_options(), common.group
        )
        return context | plain(
            {
                "width": frame.width,
                "height": frame.height,
                "seed": frame.seed,
                "gbuffer": frame.gbuffer,
                "occlusion": frame.occlusion,
                "occlusion_radius": frame.occlusion_radius,
                **self.pose,
            }
        )

    def key(self) -> dict[str, Any]:
        """What times follow from: those of another are not taken."""
        context = self.context()
        for name in ("date", "commit", "version", "scene", "notes", "schema"):
            del context[name]
        return context | {"sources": sources(), "turns": list(self.turns[:2])}

    def measurer(self) -> FrameMeasurer:
        return FrameMeasurer(self.device, self.options, self.pose, self.prepare, self.turns[3])

    def prepare(self, recipe: Recipe) -> PreparedScene:
        """The scene's structure, built where the command says: what the GPU cannot build is built
        on the CPU. LimitError, before it is built, for one that would be too large."""
        if self._builds is None:
            place = None if self.common.on == "cpu" else self.device
            self._builds = SharedBuilds(place, self.common.blas_cache(), most=STRUCTURES)
        base = self.default.recipe
        if recipe.group != base.group:
            known = self._builds.prepare(self.scene, base.build, base.group)
            self._check_size(recipe.group, known.bvh.words.nbytes)
        return self._builds.prepare(self.scene, recipe.build, recipe.group)

    def _check_size(self, group: str, default_bytes: int) -> None:
        count, default_count = (
            traced_triangles(self.scene, g) for g in (group, self.default.recipe.group)
        )
        expected = default_bytes * count / max(1, default_count)
        binding = self.device.limits["max-storage-buffer-binding-size"]
        most = min(MOST_BYTES, binding)
        if expected > most:
            why = f"{self.device.info.adapter} binds" if binding < MOST_BYTES else "tune tries"
            raise LimitError(
                f"shared meshes copied are {count:,} triangles instead of {default_count:,}, about "
                f"{expected / 1e6:,.0f} MB; {why} at most {most / 1e6:,.0f} MB"
            )

    def against_default(self, case: Case) -> Block:
        self.progress.begin("measuring the profile and the default in turns")
        return self.measurer().measure("confirmation", [self.default, case], self.turns[2])


def search_and_confirm(
    subject: Subject,
    out: Path,
    minutes: float,
    words: Sequence[str],
    confirm: Callable[[dict[str, Any], Sequence[str]], dict[str, Any]] = confirm_apart,
) -> dict[str, Any]:
    """The profile's document. The search's state stays beside `out`: more minutes go on from it."""
    quiet = subject.common.quiet
    journal = Journal.open(journal_path(out), subject.key(), lambda text: note(text, quiet=quiet))
    measurer = subject.measurer()
    search = Search(
        journal.remembering(measurer.measure),
        subject.default.recipe,
        {ray.name: ray.any_hit for ray in measurer.chosen},
        default_kernel(subject.device.info).loops,
        60 * minutes,
        subject.progress,
        subject.same_groups(),
        turns=subject.turns[0],
        last_turns=subject.turns[1],
    )
    case = search.run()
    context = subject.context()
    confirmed = None
    if case != subject.default:
        subject.progress.begin("confirming the winner in a process of its own")
        draft = profile_document(case, context, None, {}, [])
        confirmed = confirm(draft, words)
    counts = {"measured": journal.measured, "from_state": journal.used}
    explained = sentences(search, case, confirmed)
    if confirmed is not None and confirmed["total"]["result"] != "faster":
        case = subject.default
    found = evidence(search, counts)
    subject.progress.begin("what pixels see, by raster and by rays")
    seen = compare_visibility(measurer, case, subject.turns[0])
    if seen is not None:
        found["gbuffer"] = seen.facts()
        explained += filter(None, [seen.text()])
    return profile_document(case, context, confirmed, found, explained)
