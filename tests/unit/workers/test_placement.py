from __future__ import annotations

from workers.placement import GPU, misplaced
from workers.spec import GPUSettings, WorkerSpec

HERE = (GPU(0, "P40", 24576, 24000), GPU(1, "P40", 24576, 24000))


def spec(*devices, draft=()):
    return WorkerSpec("w", "m", "ar", gpu=GPUSettings(devices=devices, draft_devices=draft))


def test_devices_must_be_there():
    assert misplaced(spec(0, 1), HERE) == ()
    assert misplaced(spec("Vulkan7"), HERE) == ()
    (problem,) = misplaced(spec(0, 2, draft=(2,)), HERE)
    assert problem == "there is no GPU 2, only 0 (P40), 1 (P40): correct gpu.devices"


def test_nothing_is_said_where_no_gpu_could_be_listed():
    assert misplaced(spec(5), ()) == ()
