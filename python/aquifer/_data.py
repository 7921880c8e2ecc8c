# SPDX-License-Identifier: Apache-2.0
"""Bytes and numbers on their way into the library, checked and not copied.

Data is whatever has the buffer protocol in one piece: bytes, bytearray,
memoryview, array, mmap, numpy arrays. Everything else is refused, above all
numbers: bytes(5) is five zeros, which nobody wants to store.
"""
from __future__ import annotations

import ctypes as c
from operator import index as as_index
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer
    from _typeshed import WriteableBuffer
else:
    Buffer = WriteableBuffer = Any

__all__ = ["Buffer", "Key", "WriteableBuffer"]
Key = Union[str, Buffer]

U64_MAX = 2**64 - 1
_PyBUF_SIMPLE, _PyBUF_WRITABLE = 0, 1


class _PyBuffer(c.Structure):
    """Py_buffer of the interpreter's C interface."""

    _fields_ = [
        ("buf", c.c_void_p),
        ("obj", c.c_void_p),
        ("len", c.c_ssize_t),
        ("itemsize", c.c_ssize_t),
        ("readonly", c.c_int),
        ("ndim", c.c_int),
        ("format", c.c_void_p),
        ("shape", c.c_void_p),
        ("strides", c.c_void_p),
        ("suboffsets", c.c_void_p),
        ("internal", c.c_void_p),
    ]


_get_buffer = c.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [c.py_object, c.POINTER(_PyBuffer), c.c_int]
_release = c.pythonapi.PyBuffer_Release
_release.argtypes = [c.POINTER(_PyBuffer)]
_release.restype = None
_new_bytes = c.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes = [c.c_void_p, c.c_ssize_t]
_new_bytes.restype = c.py_object


def fresh_bytes(length: int) -> bytes:
    """Bytes without a content, which the library writes into before anybody
    else sees them: what is read is not copied again."""
    made: bytes = _new_bytes(None, length)
    return made


def address_of(data: bytes) -> int:
    """Where bytes lie: they do not move."""
    return c.cast(c.c_char_p(data), c.c_void_p).value or 0


class Borrowed:
    """The memory of an object, which cannot move while this is held."""

    __slots__ = ("_view", "address", "nbytes")

    def __init__(self, data: Any, is_written: bool = False) -> None:
        self._view = _PyBuffer()
        try:
            _get_buffer(
                data, self._view, _PyBUF_WRITABLE if is_written else _PyBUF_SIMPLE
            )
        except TypeError:
            raise TypeError(refusal("a buffer", data)) from None
        except BufferError as e:
            self._view.obj = None
            need = "one piece that can be written" if is_written else "one piece"
            raise BufferError(f"the buffer has to be {need}: {e}") from None
        self.address: int = self._view.buf or 0
        self.nbytes: int = self._view.len

    def __del__(self) -> None:
        if self._view.obj:
            _release(self._view)
            self._view.obj = None

    release = __del__


def refusal(what: str, data: Any) -> str:
    """Why this cannot be stored, and what can."""
    kind = type(data).__name__
    advice = ""
    if isinstance(data, str):
        advice = "; encode it: text.encode()"
    elif isinstance(data, int):
        advice = "; say which bytes: str(n).encode(), n.to_bytes(8, 'big')"
    return f"{what} is bytes or another buffer, not {kind}{advice}"


def key_bytes(key: Any) -> bytes:
    """A key: bytes as they are, a buffer's bytes, a text's UTF-8."""
    if type(key) is bytes:
        return key
    if isinstance(key, str):
        return key.encode()
    try:
        return bytes(memoryview(key))
    except TypeError:
        raise TypeError(
            refusal("a key", key).replace("is bytes", "is a text, bytes")
        ) from None


def value_bytes(value: Any) -> bytes:
    """A small value, copied unless it is bytes."""
    if type(value) is bytes:
        return value
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(refusal("a value", value)) from None


def value_memory(value: Any) -> tuple[Any, int, Any]:
    """A value's address for ctypes, its length, and what to hold meanwhile."""
    if type(value) is bytes:
        return value, len(value), value
    try:
        borrowed = Borrowed(value)
    except TypeError:
        raise TypeError(refusal("a value", value)) from None
    return borrowed.address, borrowed.nbytes, borrowed


def number(what: str, value: Any, most: int = U64_MAX) -> int:
    """A count, offset or size; ctypes would cut others to fit."""
    n = as_index(value)
    if not 0 <= n <= most:
        raise ValueError(f"{what} is from 0 to {most}, not {n}")
    return n


def name_bytes(what: str, name: Any) -> bytes:
    """The name of a thing in the rack."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} is a str, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError(f"the name of a {what} has no zero bytes")
    return name.encode()
