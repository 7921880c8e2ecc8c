#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the ICRC of every RoCEv2 packet of a capture anew.

usage: check_icrc.py FILE.pcap

Prints how often each address used each opcode. Fails when an ICRC is wrong
or there is no packet.
"""
import collections
import struct
import sys
import zlib

# Eight bytes of ones stand for the header that Ethernet does not have.
START = zlib.crc32(b"\xff" * 8)


def frames(data):
    magic, = struct.unpack_from("<I", data)
    if magic not in (0xA1B2C3D4, 0xA1B23C4D):
        sys.exit(f"not a pcap file: {magic:#x}")
    at = 24
    while at + 16 <= len(data):
        length, = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def icrc(ip):
    """Of an IPv4 packet without options."""
    masked = bytearray(ip[:-4])
    masked[1] = masked[8] = 0xFF
    masked[10:12] = masked[26:28] = b"\xff\xff"
    masked[32] = 0xFF
    return zlib.crc32(masked, START)


def main(path):
    seen = collections.Counter()
    wrong = 0
    with open(path, "rb") as f:
        data = f.read()
    for frame in frames(data):
        if frame[12:14] != b"\x08\x00":
            continue
        total, = struct.unpack_from("!H", frame, 16)
        ip = frame[14:14 + total]
        if ip[0] != 0x45 or ip[9] != 17 or len(ip) < 44:
            continue
        if struct.unpack_from("!H", ip, 22)[0] != 4791:
            continue
        source = ".".join(map(str, ip[12:16]))
        seen[source, ip[28]] += 1
        if icrc(ip) != int.from_bytes(ip[-4:], "little"):
            wrong += 1
            if wrong <= 5:
                print(f"wrong ICRC from {source}: {ip.hex()}")
    for (source, opcode), n in sorted(seen.items()):
        print(f"{source} opcode {opcode:#04x}: {n}")
    print(f"{sum(seen.values())} packets, {wrong} wrong")
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
