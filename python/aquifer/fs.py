# SPDX-License-Identifier: Apache-2.0
"""A file system of fsspec: aquifer://job/part-0 in pandas, dask and others.

    pandas.read_csv("aquifer://job/part-0")
    with fsspec.open("aquifer://job/part-1", "wb") as f: ...

Files are read anywhere and written once or appended to, as those of
aquifer.elastic. Opening one renews its lease once; who works for longer holds
it (aquifer.elastic.Job, or `aquifer ns hold`). Needs fsspec.
"""
from __future__ import annotations

import errno
import io
from typing import Any, Optional

from fsspec import AbstractFileSystem  # type: ignore[import]

from . import _errors, elastic
from ._rack import Rack


class _Reader(io.BufferedReader):
    """With the size, as files of fsspec have it."""

    @property
    def size(self) -> int:
        raw = self.raw
        assert isinstance(raw, elastic.File)
        return raw.size()


class AquiferFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """rack, config, token: as aquifer.Rack takes them; block_bytes: of files
    that are made; load: what expired comes back from the vault when it is
    opened."""

    protocol = "aquifer"
    root_marker = "/"

    def __init__(
        self,
        rack: Optional[str] = None,
        config: Optional[str] = None,
        token: Optional[str] = None,
        block_bytes: int = 0,
        load: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._rack = Rack(rack, config, token=token)
        self._block_bytes, self._load = block_bytes, load

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(p) for p in path]
        text = str(path)
        if text.startswith("aquifer://"):
            text = text[len("aquifer://"):]
        return "/" + text.strip("/")

    def unstrip_protocol(self, name: str) -> str:
        return "aquifer://" + self._strip_protocol(name).lstrip("/")

    # ---- looking ---------------------------------------------------------

    def _details(self, name: elastic.Name) -> dict[str, Any]:
        is_file = name.kind == "file"
        size = 0
        if is_file and name.is_ready:
            with elastic.File(self._rack, name.path) as f:
                size = f.size()  # nodes know it, and not the controller
        return {
            "name": name.path,
            "size": size,
            "type": "file" if is_file else
                    "directory" if name.kind == "folder" else "other",
        }

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path == "/":
            return {"name": "/", "size": 0, "type": "directory"}
        if self._load:
            try:
                elastic.File(self._rack, path, load=True).close()
            except OSError as e:
                if e.errno not in (errno.EINVAL, errno.ENOENT, errno.EISDIR):
                    raise
        return self._details(elastic.stat(self._rack, path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> Any:
        path = self._strip_protocol(path)
        info = self.info(path)
        if info["type"] == "directory":
            rows = [self._details(n) for n in elastic.listdir(self._rack, path)]
        else:
            rows = [info]
        rows.sort(key=lambda row: row["name"])
        return rows if detail else [row["name"] for row in rows]

    # ---- changing --------------------------------------------------------

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        elastic.makedirs(self._rack, self._strip_protocol(path))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        try:
            self.mkdir(path)
        except _errors.ExistsError:
            if not exist_ok:
                raise

    def rmdir(self, path: str) -> None:
        elastic.remove(self._rack, self._strip_protocol(path))

    def rm(
        self, path: Any, recursive: bool = False,
        maxdepth: Optional[int] = None,
    ) -> None:
        for one in path if isinstance(path, list) else [path]:
            elastic.remove(self._rack, self._strip_protocol(one), recursive)

    def _rm(self, path: str) -> None:
        self.rm(path)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        elastic.rename(
            self._rack, self._strip_protocol(path1), self._strip_protocol(path2)
        )

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            while data := source.read(1 << 20):
                target.write(data)

    def created(self, path: str) -> Any:
        raise NotImplementedError("names have no times")

    modified = created

    # ---- files -----------------------------------------------------------

    def _open(
        self, path: str, mode: str = "rb", block_size: Optional[int] = None,
        **_: Any,
    ) -> Any:
        kind = mode.replace("b", "") or "r"
        raw = elastic.File(
            self._rack, self._strip_protocol(path), kind,
            block_bytes=self._block_bytes, load=self._load,
        )
        size = block_size if isinstance(block_size, int) else 1 << 20
        return _Reader(raw, size) if kind == "r" else io.BufferedWriter(raw, size)
