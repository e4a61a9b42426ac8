"""The structures that the viewer switches between, on the host and on the device."""

from typing import Any

from engine.gpu.device import Device
from passes.gpu_scene import GpuScene
from treeline.structures import Structure
from treeline.view.build_worker import BuildWorker, Built, StructureKey, build
from treeline.view.view_error import EXPECTED, view_error

KEPT = 2  # what A and B of a comparison need
AT_ONCE = 512  # triangles up to which a build takes less than a worker's answer


class StructureStore:
    """Builds of one scene, by key; the `KEPT` used last stay, so that A and B switch without a
    build. `cached` uses the user's cache of BLASes."""

    def __init__(self, device: Device, scene: Any, *, cached: bool = True) -> None:
        self.device = device
        self.scene = scene
        self.cached = cached
        self._worker: BuildWorker | None = None
        self._structures: dict[StructureKey, Structure] = {}
        self._on_gpu: dict[StructureKey, GpuScene] = {}

    @property
    def busy(self) -> str | None:
        """What is being built, for the status line."""
        if self._worker is None or self._worker.wanted is None:
            return None
        return self._worker.progress

    def add(self, key: StructureKey, structure: Structure) -> None:
        self._structures.pop(key, None)
        self._structures[key] = structure
        while len(self._structures) > KEPT:
            oldest = next(iter(self._structures))
            del self._structures[oldest]
            self._on_gpu.pop(oldest, None)

    def get(self, key: StructureKey) -> Structure | None:
        """The structure if there is one; it then counts as used."""
        if key in self._structures:
            self.add(key, self._structures[key])
        return self._structures.get(key)

    def request(self, key: StructureKey) -> Built | None:
        """Begins to build it, unless that has begun; the answer if it took no time."""
        if self.scene.triangle_count <= AT_ONCE:
            try:
                built = Built(key, build(self.scene, key, None, self.cached))
            except EXPECTED as error:
                built = Built(key, None, view_error(error))
            return self._keep(built)
        if self._worker is None:
            adapter = self.device.info.adapter
            self._worker = BuildWorker(self.scene, adapter, cached=self.cached)
        self._worker.request(key)
        return None

    def poll(self) -> Built | None:
        """What has been built since the last call; it is kept."""
        built = None if self._worker is None else self._worker.poll()
        return built and self._keep(built)

    def _keep(self, built: Built) -> Built:
        if built.structure is not None:
            self.add(built.key, built.structure)
        return built

    def cancel(self) -> None:
        """Nothing that is being built is wanted any more."""
        if self._worker is not None:
            self._worker.cancel()

    def on_gpu(self, key: StructureKey) -> GpuScene | None:
        """The structure's scene on the device, if it has been uploaded."""
        return self._on_gpu.get(key)

    def upload(self, key: StructureKey, structure: Structure) -> GpuScene:
        """The same, uploaded if it is not there. LimitError where the device has no room."""
        scene = self._on_gpu.get(key)
        if scene is None:
            scene = self._on_gpu[key] = GpuScene(self.device, structure.prepared)
        return scene

    def replace_device(self, device: Device) -> None:
        """After the old one was lost: everything is uploaded again when it is wanted."""
        self.device = device
        self._on_gpu.clear()

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
