# SPDX-License-Identifier: Apache-2.0
"""Memory in other machines: regions, tables, indexes and shared memory of a rack.

    import aquifer

    with aquifer.Rack() as rack:
        with rack.create_table("users", 1000) as users:
            users["ann"] = b"42"
            print(users["ann"], len(users))

`aquifer up` starts a rack on this machine. docs/python.md and aquifer(3) say
more; the package uses libaquifer.so.1, and needs nothing else.
"""
from ._errors import (
    AccessError,
    ClosedError,
    DeadlineError,
    Error,
    ExistsError,
    NodeLostError,
    NoSpaceError,
    NotFoundError,
    StaleError,
)
from ._index import Index, key_of_number, number_of_key
from ._rack import Rack
from ._region import Region, RegionInfo
from ._shared import SharedInfo, SharedMemory
from ._table import Table
from ._version import __version__
from ._walk import Walk, WalkInfo, WalkResult

__all__ = [
    "AccessError",
    "ClosedError",
    "DeadlineError",
    "Error",
    "ExistsError",
    "Index",
    "NodeLostError",
    "NoSpaceError",
    "NotFoundError",
    "Rack",
    "Region",
    "RegionInfo",
    "SharedInfo",
    "SharedMemory",
    "StaleError",
    "Table",
    "Walk",
    "WalkInfo",
    "WalkResult",
    "__version__",
    "key_of_number",
    "number_of_key",
]
