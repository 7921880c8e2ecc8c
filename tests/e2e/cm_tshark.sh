#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tshark understands the messages of a whole connection, captured from rping.
# Between processes of one machine they go to queue pair 1 of a slot, which
# tshark takes for an ordinary one: the number is put right in the copy.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need rping tshark
need_nic
export AQUIFER_PCAP=$TMP/server.pcap
start_cm_server rping -s -a 127.0.0.1 -V -C 2
unset AQUIFER_PCAP
soft timeout 30 rping -c -a 127.0.0.1 -V -C 2 >"$TMP/client" 2>&1 ||
	fail "rping: $(cat "$TMP/client")"
wait "$SERVER_PID" || fail "server: $(cat "$TMP/server")"
python3 - "$TMP/server.pcap" "$TMP/pcap" <<'PYTHON'
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
at = 24
while at < len(data):
    frame = at + 16
    qpn = frame + 47
    if data[frame + 42] == 0x64 and \
            int.from_bytes(data[qpn:qpn + 3], "big") & 0x3fff == 1:
        data[qpn:qpn + 3] = b"\0\0\1"
    at = frame + struct.unpack("<I", data[at + 8:at + 12])[0]
open(sys.argv[2], "wb").write(data)
PYTHON
HOME=$TMP tshark -n -r "$TMP/pcap" -Y 'infiniband.mad' 2>/dev/null |
	grep -o 'CM: .*' >"$TMP/found"
printf 'CM: %s\n' ConnectRequest ConnectReply ReadyToUse DisconnectRequest \
	DisconnectReply >"$TMP/expected"
diff -u "$TMP/expected" "$TMP/found" || fail "other messages than expected"
HOME=$TMP tshark -n -r "$TMP/pcap" -Y _ws.malformed >"$TMP/odd" 2>/dev/null
[[ ! -s $TMP/odd ]] || fail "malformed: $(cat "$TMP/odd")"
echo "5 messages dissected"
