#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the ELF kernel out of a bzImage, which saves an emulated CPU seconds.

usage: extract_vmlinux.py BZIMAGE VMLINUX
"""
import lzma
import struct
import subprocess
import sys
import zlib


def main(source, target):
    with open(source, "rb") as f:
        image = f.read()
    if image[0x202:0x206] != b"HdrS":
        sys.exit(f"{source}: no bzImage")
    # The protected-mode part follows the boot sector and setup_sects more.
    start = ((image[0x1F1] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[start + offset:start + offset + length]
    if payload.startswith(b"\xfd7zXZ\0"):
        kernel = lzma.LZMADecompressor().decompress(payload)
    elif payload.startswith(b"\x1f\x8b"):
        kernel = zlib.decompressobj(31).decompress(payload)
    elif payload.startswith(b"\x28\xb5\x2f\xfd"):
        # The last four bytes are the size, which is not part of the stream.
        kernel = subprocess.run(["zstd", "-dcq"], input=payload[:-4],
                                stdout=subprocess.PIPE, check=True).stdout
    else:
        sys.exit(f"{source}: unknown compression {payload[:6].hex()}")
    if not kernel.startswith(b"\x7fELF"):
        sys.exit(f"{source}: no ELF inside")
    with open(target, "wb") as f:
        f.write(kernel)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
