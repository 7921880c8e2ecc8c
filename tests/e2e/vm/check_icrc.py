#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the ICRC of every RoCEv2 packet of a capture anew.

usage: check_icrc.py FILE.pcap [--all]

Prints how often each address used each opcode. Fails when an ICRC is wrong
or there is no packet; with --all also when the RC and UD opcodes of the
standard are not all there.
"""
import collections
import ipaddress
import struct
import sys
import zlib

# Eight bytes of ones stand for the header that Ethernet does not have.
START = zlib.crc32(b"\xff" * 8)
STANDARD = set(range(0x00, 0x15)) | {0x16, 0x17, 0x64, 0x65}


def frames(data):
    magic, = struct.unpack_from("<I", data)
    if magic not in (0xA1B2C3D4, 0xA1B23C4D):
        sys.exit(f"not a pcap file: {magic:#x}")
    at = 24
    while at + 16 <= len(data):
        length, = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def packets(data):
    """IP packets to the port of RoCEv2, and where their UDP header is."""
    for frame in frames(data):
        kind = frame[12:14]
        if kind == b"\x08\x00" and frame[14] == 0x45 and frame[23] == 17:
            total, = struct.unpack_from("!H", frame, 16)
            udp = 20
        elif kind == b"\x86\xdd" and frame[20] == 17:
            total = 40 + struct.unpack_from("!H", frame, 18)[0]
            udp = 40
        else:
            continue
        ip = frame[14:14 + total]
        if len(ip) < udp + 24:
            continue
        if struct.unpack_from("!H", ip, udp + 2)[0] == 4791:
            yield ip, udp


def icrc(ip, udp):
    """Of an IPv4 packet without options, or an IPv6 one without more headers."""
    masked = bytearray(ip[:-4])
    if udp == 20:
        masked[1] = masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    else:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    masked[udp + 6:udp + 8] = b"\xff\xff"
    masked[udp + 12] = 0xFF
    return zlib.crc32(masked, START)


def main(path, want_all):
    seen = collections.Counter()
    ports = collections.defaultdict(set)
    wrong = 0
    with open(path, "rb") as f:
        data = f.read()
    for ip, udp in packets(data):
        at = slice(12, 16) if udp == 20 else slice(8, 24)
        source = str(ipaddress.ip_address(ip[at]))
        seen[source, ip[udp + 8]] += 1
        ports[source].add(struct.unpack_from("!H", ip, udp)[0])
        if icrc(ip, udp) != int.from_bytes(ip[-4:], "little"):
            wrong += 1
            if wrong <= 5:
                print(f"wrong ICRC from {source}: {ip.hex()}")
    for (source, opcode), n in sorted(seen.items()):
        print(f"{source} opcode {opcode:#04x}: {n}")
    for source, used in sorted(ports.items()):
        print(f"{source} source ports: {len(used)}")
    print(f"{sum(seen.values())} packets, {wrong} wrong")
    missing = STANDARD - {opcode for _, opcode in seen} if want_all else set()
    if missing:
        print("missing opcodes:", *(f"{x:#04x}" for x in sorted(missing)))
    return 1 if wrong or missing or not seen else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--all"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], len(sys.argv) == 3))
