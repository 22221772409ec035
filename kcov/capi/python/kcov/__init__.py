"""Kernel coverage of system calls: kcov(4) on Linux and NetBSD, over libkcov.

    with kcov.trace() as t:
        os.stat("/")
    print([hex(pc) for pc in t.pcs])

The kernel traces the thread that enters the block, and no other thread or process. Some records are
the interpreter's, which allocates memory and takes page faults.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import NamedTuple

_own = os.path.join(os.path.dirname(__file__), "libkcov.so")
# A PyDLL keeps the interpreter's lock, so that the kernel does not trace a wait for it.
_lib = ctypes.PyDLL(os.environ.get("LIBKCOV", _own))

# As in libkcov.h.
_RECORD_PC, _RECORD_CMP = 1, 2
_TRUNCATED, _CORRUPT, _OTHER = 1, 2, 100


class Error(Exception):
    """A failed call. `kind` is a value of `enum kcov_failure` in libkcov.h."""

    def __init__(self, message, kind):
        super().__init__(message)
        self.kind = kind


class _Range(ctypes.Structure):
    _fields_ = [("start", c_uint64), ("end", c_uint64)]


class _Text(ctypes.Structure):
    _fields_ = [("link_time", _Range), ("run_time", _Range), ("kaslr_offset", c_uint64)]


class _Token(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint8 * 8), ("size", ctypes.c_uint8)]


class _Records(ctypes.Structure):
    _fields_ = [("words", c_void_p), ("records", c_size_t), ("words_per_record", c_uint32),
                ("completeness", c_uint32)]


def _function(name, result, *arguments, fails=True):
    function = getattr(_lib, "kcov_" + name)
    function.restype, function.argtypes = result, arguments
    if fails:
        function.errcheck = _check
    return function


def _check(result, _function, _arguments):
    if result is None or result == -1:
        raise Error(_last_message().decode(), _last_failure())
    return result


_last_failure = _function("last_failure", c_int, fails=False)
_last_message = _function("last_message", c_char_p, fails=False)
_open = _function("session_open", c_void_p, c_char_p, c_uint64)
_enable = _function("session_enable", c_int, c_void_p, c_uint32)
_disable = _function("session_disable", c_int, c_void_p)
_reset = _function("session_reset", c_int, c_void_p)
_describe = _function("session_records", c_int, c_void_p, POINTER(_Records))
_copy = _function("session_copy", c_int64, c_void_p, c_void_p, c_size_t)
_close = _function("session_free", c_int, c_void_p, fails=False)
_map_new = _function("novelty_new", c_void_p, POINTER(_Range), c_size_t, c_size_t)
_map_share = _function("novelty_share", c_void_p, c_int, POINTER(_Range), c_size_t, c_size_t)
_map_load = _function("novelty_load", c_void_p, c_char_p)
_map_save = _function("novelty_save", c_int, c_void_p, c_char_p)
_map_has_new = _function("novelty_has_new", c_int, c_void_p, c_void_p, c_size_t)
_map_merge = _function("novelty_merge", c_int64, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t,
                       POINTER(c_uint64))
_map_signals = _function("novelty_signals", c_int64, c_void_p, c_void_p, c_size_t)
_map_free = _function("novelty_free", None, c_void_p, fails=False)
_dictionary_new = _function("dictionary_new", c_void_p, c_size_t)
_dictionary_add = _function("dictionary_add", c_int64, c_void_p, c_void_p, c_size_t, c_uint32)
_dictionary_tokens = _function("dictionary_tokens", c_int64, c_void_p, POINTER(_Token), c_size_t)
_dictionary_missed = _function("dictionary_missed", c_int64, c_void_p)
_dictionary_free = _function("dictionary_free", None, c_void_p, fails=False)

call_site = _function("pc_call_site", c_uint64, c_uint64, fails=False)
call_site.__doc__ = "The call that returns to a program counter: ask addr2line(1) about it."
run_time = _function("pc_run_time", c_uint64, c_uint64, c_uint64, fails=False)
run_time.__doc__ = "The address in the running kernel of a program counter, given the KASLR offset."


class _Handle:
    """A handle of libkcov, which is freed with this object."""

    def __init__(self, pointer, free):
        self._as_parameter_ = c_void_p(pointer)
        self._free = free

    def __del__(self):
        self._free(self)


def _shaped(view, words_per_record):
    """Bytes as 64-bit words, in rows of several."""
    if words_per_record == 1 or not view.nbytes:
        return view.cast("Q")
    return view.cast("Q", [view.nbytes // 8 // words_per_record, words_per_record])


class Trace:
    """The records of one block; `trace` opens it."""

    def __init__(self, mode, path, words):
        self._session = _Handle(_open(path and os.fsencode(path), words), _close)
        self._mode, self._state = mode, "new"

    def __enter__(self):
        if self._state != "new":
            raise RuntimeError("the records of the first block are in use: open another trace")
        _enable(self._session, self._mode)
        self._state = "enabled"
        return self

    def __exit__(self, *_):
        _disable(self._session)
        self._state = "disabled"

    def reset(self):
        """Forgets the records up to now. Only in the block."""
        _reset(self._session)

    def _now(self):
        now = _Records()
        _describe(self._session, byref(now))
        if now.completeness == _CORRUPT:
            raise Error("cannot read the records: the target or another process wrote to the "
                        "buffer; trace again", _OTHER)
        return now

    def _check_mode(self, mode):
        if self._mode != mode:
            names = {_RECORD_PC: "program counters", _RECORD_CMP: "comparisons"}
            raise TypeError(f"this trace has no {names[mode]}, but {names[self._mode]}")

    def _frozen(self, mode):
        self._check_mode(mode)
        if self._state != "disabled":
            raise RuntimeError("the kernel is still writing: leave the block, or call copy()")
        now = self._now()
        if now.records == 0 or not now.words:
            return self.copy()  # of the words of a 32-bit kernel
        # The array keeps the session, and the view keeps the array.
        array = (c_uint64 * (now.records * now.words_per_record)).from_address(now.words)
        array.session = self._session
        return _shaped(memoryview(array).cast("B").toreadonly(), now.words_per_record)

    @property
    def pcs(self):
        """The program counters, in order: a view of the words in the buffer, without a copy. They no
        longer change. The view keeps the device open."""
        return self._frozen(_RECORD_PC)

    @property
    def comparisons(self):
        """The comparisons, as `pcs`: a view with a row of four words for each: the type, the two
        operands and the program counter. A view of no rows has one dimension."""
        return self._frozen(_RECORD_CMP)

    @property
    def truncated(self):
        """Whether the buffer is full, so that records may be missing."""
        return self._now().completeness == _TRUNCATED

    def __len__(self):
        return self._now().records

    def copy(self):
        """A copy of the records up to now, also in the block: eight bytes for each word."""
        now = self._now()
        data = bytearray(8 * now.records * now.words_per_record)
        if data:
            _copy(self._session, byref(ctypes.c_char.from_buffer(data)), len(data) // 8)
        return _shaped(memoryview(data), now.words_per_record)


def trace(comparisons=False, *, words=0, path=None):
    """Opens a device for a `with` block, which the kernel traces. `words` is the buffer's size; 0 is
    262144 words. `path` is the device's, if it is not the system's."""
    return Trace(_RECORD_CMP if comparisons else _RECORD_PC, path, words)


def _words(source, mode=_RECORD_PC):
    """The address and number of words of a trace or a buffer, and the object that holds them."""
    if isinstance(source, Trace):
        source._check_mode(mode)
        now = source._now()
        if now.words:
            return now.words, now.records * now.words_per_record, source
        source = source.copy()
    view = memoryview(source)
    if view.itemsize != 8 or view.format.lstrip("@=<") not in ("Q", "L"):
        raise TypeError("pass a trace, or a buffer of unsigned 64-bit words such as array('Q')")
    data = ctypes.create_string_buffer(view.tobytes(), max(view.nbytes, 1))
    return ctypes.addressof(data), view.nbytes // 8, data


class NoveltyMap:
    """Remembers which signals, such as program counters, have been seen.

    There is room for all signals in `ranges`, such as `[kcov.text().link_time]`, and for `fallback`
    others. Processes share a map through a file `fd`, with the same ranges and fallback."""

    def __init__(self, ranges=(), fallback=4096, *, fd=None):
        spans = (_Range * len(ranges))(*((span.start, span.stop) for span in ranges))
        sizes = spans, len(spans), fallback
        map_ = _map_new(*sizes) if fd is None else _map_share(fd, *sizes)
        self._handle = _Handle(map_, _map_free)

    @classmethod
    def load(cls, path):
        """Loads a map that `save` saved."""
        loaded = cls.__new__(cls)
        loaded._handle = _Handle(_map_load(os.fsencode(path)), _map_free)
        return loaded

    def save(self, path):
        """Replaces the file."""
        _map_save(self._handle, os.fsencode(path))

    def has_new(self, source):
        """Whether a trace, or a buffer of 64-bit words, has a new signal."""
        address, count, _held = _words(source)
        return bool(_map_has_new(self._handle, address, count))

    def merge(self, source):
        """Adds signals. Returns the new ones, in order, and how many occurrences had no room."""
        address, count, _held = _words(source)
        out, unrecorded = (c_uint64 * count)(), c_uint64()
        added = _map_merge(self._handle, address, count, out, count, byref(unrecorded))
        return out[:added], unrecorded.value

    def signals(self):
        """All signals, in ascending order."""
        out = (c_uint64 * len(self))()
        return out[: _map_signals(self._handle, out, len(out))]

    def __len__(self):
        return _map_signals(self._handle, None, 0)


class Dictionary:
    """A bounded set of the numbers that the kernel has compared with, for a fuzzer's inputs."""

    def __init__(self, capacity=65536):
        self._handle = _Handle(_dictionary_new(capacity), _dictionary_free)

    def add(self, source, *, skip_equal=False, skip_zero=False, only_const=False):
        """Adds the numbers of the comparisons in a trace. Returns how many of these added one."""
        address, count, _held = _words(source, _RECORD_CMP)
        if count % 4:
            raise TypeError("pass comparisons: four words for each")
        flags = bool(skip_equal) | bool(skip_zero) << 1 | bool(only_const) << 2
        return _dictionary_add(self._handle, address, count // 4, flags)

    def tokens(self):
        """The numbers as bytes, in both byte orders."""
        out = (_Token * _dictionary_tokens(self._handle, None, 0))()
        _dictionary_tokens(self._handle, out, len(out))
        return [bytes(token.bytes[: token.size]) for token in out]

    @property
    def missed(self):
        """How often a number did not fit."""
        return _dictionary_missed(self._handle)


class Text(NamedTuple):
    """The text of the running Linux kernel, without modules: the addresses that Linux records,
    those in /proc/kallsyms, and the difference."""

    link_time: range
    run_time: range
    kaslr_offset: int


def text():
    """Finds the text of the running kernel. Linux only, for root."""
    found = _Text()
    _function("text_read", c_int, POINTER(_Text))(byref(found))
    link, run = found.link_time, found.run_time
    return Text(range(link.start, link.end), range(run.start, run.end), found.kaslr_offset)


def probe(path=None):
    """The running kernel's modes: a set of "PC" and "CMP". An `Error` says why kcov cannot be used."""
    modes = c_uint32()
    _function("probe", c_int, c_char_p, POINTER(c_uint32))(path and os.fsencode(path), byref(modes))
    return {name for bit, name in ((_RECORD_PC, "PC"), (_RECORD_CMP, "CMP")) if modes.value & bit}
