from __future__ import annotations

from workers.placement import GPU, misplaced, too_big
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


def test_a_worker_must_fit_on_its_devices():
    small = (GPU(0, "P40", 1000, 900), GPU(1, "P40", 1000, 900))
    assert too_big(spec(0), small, 1000 * 2**20, {}) == ()
    assert too_big(spec(0, 1), small, 2e9, {}) == ()
    (problem,) = too_big(spec(0), small, 2e9, {"`slots: 1`": 1.5e9, "q8_0": 9e8})
    assert problem == "does not fit, needs 2.0 of 1.0 GB: with `slots: 1` 1.5; with q8_0 0.9"
    (problem,) = too_big(spec(0), small, 2e9, {})
    assert "smaller model" in problem
    partly = WorkerSpec("w", "m", "ar", gpu=GPUSettings(devices=(0,), layers=10))
    assert too_big(partly, small, 2e9, {}) == ()
    assert too_big(spec("Vulkan0"), small, 2e9, {}) == ()
    assert too_big(spec(0), (), 2e9, {}) == ()
