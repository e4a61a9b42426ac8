"""The structures and frames that settings ask for: handed out where they are there, else made in
the background and handed out later.
"""

from dataclasses import dataclass, replace
from typing import Any

from engine.gpu.device import Device
from passes.option_list import ViewSettings
from treeline.structures import Structure
from treeline.view.build_worker import StructureKey
from treeline.view.frame_maker import FrameMaker
from treeline.view.frame_set import FrameSet, built_into_frames
from treeline.view.structure_store import StructureStore
from treeline.view.view_error import ViewFailure


def structure_key(settings: ViewSettings) -> StructureKey:
    return StructureKey(settings.build, settings.group)


@dataclass(frozen=True, slots=True)
class Supplied:
    """What settings can be drawn with at a size."""

    settings: ViewSettings
    size: tuple[int, int]
    structure: Structure
    frames: FrameSet


class FrameSupply:
    """Of one scene. Structures are built in a process, kernels compiled in a thread unless
    `in_background` is False."""

    def __init__(self, device: Device, scene: Any, *, cached: bool, in_background: bool) -> None:
        self.device = device
        self.store = StructureStore(device, scene, cached=cached)
        self._maker = FrameMaker(in_background)

    @property
    def busy(self) -> str | None:
        """What is being made."""
        if self.store.busy is not None:
            return self.store.busy
        return "compiling kernels" if self._maker.busy else None

    def get(
        self, settings: ViewSettings, size: tuple[int, int], last: Supplied | None
    ) -> Supplied | None:
        """What is there for the settings; while their structure is being built, for the `last` ones
        at this size; None while there is neither. ViewFailure where something cannot be made."""
        structure = self._structure(settings)
        if structure is None:
            if last is None:
                return None
            settings, structure = last.settings, last.structure
        if last is not None and (last.settings, last.size) == (settings, size):
            self._maker.drop()  # frames for settings that are no longer wanted
            return last
        frames = self._frames(settings, size, structure, last)
        return None if frames is None else Supplied(settings, size, structure, frames)

    def _structure(self, settings: ViewSettings) -> Structure | None:
        key = structure_key(settings)
        built = self.store.poll()
        structure = self.store.get(key)
        if structure is not None:
            if self.store.busy is not None:
                self.store.cancel()  # for settings that are no longer wanted
            return structure
        if built is None or built.key != key:
            built = self.store.request(key)
        if built is not None and built.error is not None:
            raise ViewFailure(built.error)
        return None if built is None else built.structure

    def _frames(
        self,
        settings: ViewSettings,
        size: tuple[int, int],
        structure: Structure,
        last: Supplied | None,
    ) -> FrameSet | None:
        """The last frames where they would come out the same, else new ones; None until they are
        made."""
        options = replace(settings.frame, width=size[0], height=size[1])
        key = structure_key(settings)
        old = None
        if last is not None and last.frames.fits(self.store.on_gpu(key), options):
            old = last.frames
            if old.counted is not None or not options.count:
                self._maker.drop()
                return old
        device = self.device

        def make() -> FrameSet:
            frames = old or FrameSet(device, self.store.upload(key, structure), options)
            if options.count:
                frames.make_counted()
            return frames

        name = (key, built_into_frames(options), options.count, id(device))
        frames = self._maker.take(name)
        if frames is None:
            self._maker.request(name, make)
            frames = self._maker.take(name)
        return frames

    def drop(self) -> None:
        """Gives up the frames that are being made."""
        self._maker.drop()

    def replace_device(self, device: Device) -> None:
        """After the old one was lost: structures stay, all else is made anew."""
        self.device = device
        self._maker.drop()
        self.store.replace_device(device)

    def close(self) -> None:
        """Ends the process that builds and the thread that compiles, if there are any."""
        self.store.close()
        self._maker.close()
