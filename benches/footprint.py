"""The memory of this process, as reported by Linux, and a function that touches the machine's free memory."""

from __future__ import annotations

import mmap

PAGE = 4096


def reset_peak():
    """Reset this process's peak memory."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def current_memory():
    """Return the resident memory in bytes."""
    return bytes_of("VmRSS", "/proc/self/status")


def peak_memory():
    """Return the peak resident memory in bytes."""
    return bytes_of("VmHWM", "/proc/self/status")


def touch_memory(size):
    """Write to `size` bytes of free memory, or to three quarters of the free memory if that is less.

    The host of a virtual machine may reclaim memory that was free for a while. The first process that writes to this
    memory then waits for the host, which may take longer than counting. After this call the next process does not wait.
    """
    pages = min(size, bytes_of("MemFree", "/proc/meminfo") // 4 * 3) // PAGE + 1
    with mmap.mmap(-1, pages * PAGE) as memory:
        memory[::PAGE] = bytes(pages)


def bytes_of(name, file):
    """Return the figure of this name in a kernel file, converted from KiB to bytes."""
    with open(file) as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
