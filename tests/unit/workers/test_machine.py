"""What a host is made of."""

from __future__ import annotations

from workers.machine import Machine, this_machine
from workers.placement import GPU


def test_this_host_is_described():
    machine = this_machine("")
    assert machine.cores >= 1
    assert machine.memory_gb is not None
    assert machine.room_gb == machine.memory_gb
    (line,) = machine.lines()
    assert f"{machine.cores} cores" in line


def test_workers_live_in_the_gpus_memory_where_there_are_gpus():
    machine = Machine("Linux", "p", 4, 64.0, (GPU(0, "Big", 24_000, 20_000),))
    assert machine.room_gb == 25.17
    assert machine.lines()[1] == "GPU 0: Big, 24000 MiB"
