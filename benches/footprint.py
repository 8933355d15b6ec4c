"""What a process has of memory, as Linux says, and what the machine has at hand."""

from __future__ import annotations

import mmap

PAGE = 4096


def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def current_memory():
    return bytes_of("VmRSS", "/proc/self/status")


def peak_memory():
    return bytes_of("VmHWM", "/proc/self/status")


def touch_memory(size):
    """Writes to so many bytes of free memory, or to most of it, so that the next to need them has them at once.

    The host of a virtual machine may take back what has been free for a while. Who is first to write to it then waits
    for the host, which may take longer than to count.
    """
    pages = min(size, bytes_of("MemFree", "/proc/meminfo") // 4 * 3) // PAGE + 1
    with mmap.mmap(-1, pages * PAGE) as memory:
        memory[::PAGE] = bytes(pages)


def bytes_of(name, file):
    """A figure of a file of the kernel's, which tells them in KiB."""
    with open(file) as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
