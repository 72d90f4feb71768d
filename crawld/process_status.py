"""What Linux tells of a process in /proc."""

from __future__ import annotations

from pathlib import Path


def memory_mb(process_id: int, key: str) -> float:
    """Return a size of a process by its name in /proc, 2^20 bytes; 0 if there is none.

    The peak is `VmHWM`, not `ru_maxrss`, which begins with that of the process that forked.
    """
    try:
        text = Path(f"/proc/{process_id}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    lines = (line.split() for line in text.splitlines() if line.startswith(key + ":"))
    return next((int(words[1]) / 1024 for words in lines), 0.0)
