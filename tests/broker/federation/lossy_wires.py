"""Network namespaces of one machine on wires that delay and lose packets.

The wires are this process: every namespace has a TUN device, and packets go from one to another by way of a thread, which lets them
wait and drops some.  That is what ``tc netem`` would do, on kernels that do not have it as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x0001 | 0x1000


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class LossyWires:
    def __init__(self, loss: float, shortest: float, longest: float, seed: int) -> None:
        self.loss, self.shortest, self.longest = loss, shortest, longest
        self.carried = self.lost = 0
        self._devices: dict[bytes, int] = {}
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def plug(self, namespace: str, address: str) -> None:
        """Give a namespace an end of the wires."""
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        name = f"nc{os.getpid() % 100_000}t{len(self._devices)}"
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN_WITHOUT_HEADER))
        self._devices[bytes(map(int, address.split(".")))] = device
        ip("link", "set", name, "netns", namespace)
        ip("-n", namespace, "address", "add", f"{address}/24", "dev", name)
        ip("-n", namespace, "link", "set", name, "up", "mtu", "1400")
        ip("-n", namespace, "link", "set", "lo", "up")

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        for device in self._devices.values():
            os.close(device)

    def _carry(self) -> None:
        waiting: list[tuple[float, int, int, bytes]] = []
        while not self._over.is_set():
            pause = min(0.1, max(0.0, waiting[0][0] - time.monotonic())) if waiting else 0.1
            for device in select.select(list(self._devices.values()), [], [], pause)[0]:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        packet = os.read(device, 65_536)
                        receiver = self._devices.get(packet[16:20])
                        self.carried += 1
                        if receiver is None or self._random.random() < self.loss:
                            self.lost += 1
                            continue
                        due = time.monotonic() + self._random.uniform(self.shortest, self.longest)
                        heapq.heappush(waiting, (due, self.carried, receiver, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, receiver, packet = heapq.heappop(waiting)
                with contextlib.suppress(OSError):  # its device is gone, or full
                    os.write(receiver, packet)


@contextlib.contextmanager
def namespaces_on_wires(
    count: int, *, loss: float, shortest: float, longest: float, seed: int = 1
) -> Iterator[tuple[list[tuple[str, str]], LossyWires]]:
    """Names and addresses of so many namespaces; skips the test where they cannot be made."""
    places = [(f"nc{os.getpid()}w{number}", f"10.78.0.{number + 1}") for number in range(count)]
    wires = LossyWires(loss, shortest, longest, seed)
    with ExitStack() as stack:
        try:
            for name, address in places:
                ip("netns", "add", name)
                stack.callback(ip, "netns", "delete", name)
                wires.plug(name, address)
        except (OSError, subprocess.CalledProcessError) as error:
            wires.end()
            pytest.skip(f"network namespaces with TUN devices cannot be made here: {error}")
        stack.callback(wires.end)  # before the namespaces go, and their devices with them
        wires.begin()
        yield places, wires
