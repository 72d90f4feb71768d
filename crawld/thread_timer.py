"""A timer of the operating system whose signal goes to one thread; Python has none.

Source: timer_create(2), SIGEV_THREAD_ID.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

_CLOCK_MONOTONIC: Final = 1
_SIGEV_THREAD_ID: Final = 4
_SIGEVENT_INTS: Final = 16
"""Size of a sigevent, 64 bytes; after a value of 8 bytes: signal, kind of notification, thread."""


class _Timer(ctypes.Structure):
    """An itimerspec: interval, then first expiry, each in seconds and nanoseconds."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("first_s", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class ThreadTimer:
    """Sends a signal to a thread of this process once, after a time.

    Args:
        number: the signal.
        thread_id: the thread's id at the operating system.

    Raises:
        OSError: there is no such thread, or there are too many timers.
    """

    def __init__(self, number: signal.Signals, thread_id: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = (ctypes.c_int * _SIGEVENT_INTS)(0, 0, number, _SIGEV_THREAD_ID, thread_id)
        made = self._libc.timer_create(_CLOCK_MONOTONIC, event, ctypes.byref(self._timer))
        if made:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def set(self, after_s: float) -> None:
        """Send the signal after so many seconds, and not before; 0: never."""
        whole_s = int(after_s)
        spec = _Timer(0, 0, whole_s, int((after_s - whole_s) * 1e9))
        self._libc.timer_settime(self._timer, 0, ctypes.byref(spec), None)
