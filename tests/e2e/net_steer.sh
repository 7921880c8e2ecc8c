#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Four processes at one address, by UDP: at first they pass packets on to each
# other, then the kernel knows whose are whose. One is killed, which mixes the
# kernel's list up; that heals, too.
# Argument: the client of a memory node.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

client=$1
need curl python3
need_nic
DIR=$TMP/$AQUIFER_RACK_NAME
a=127.$((RANDOM % 250 + 1)).$((RANDOM % 250)).1
b=${a%.1}.2
export AQUIFER_NIC_PORT=udp
NODES=()

# request NODE METHOD PATH [BODY]
request() {
	local args=(-X "$2")
	(($# > 3)) && args+=(-d "$4")
	curl -sS --max-time 20 --unix-socket "$DIR/m$1.sock" \
		-H "Authorization: Bearer $TOKEN" "${args[@]}" \
		"http://m$1$3"
}

for i in 0 1 2 3; do
	AQUIFER_NIC_ADDRESS=$a "$AQUIFER" memory --size 8M --name "m$i" \
		>"$TMP/node.$i" 2>&1 &
	NODES[i]=$!
	PIDS+=("$!")
	TOKEN=none
	for _ in {1..200}; do
		request "$i" GET /v1/status >/dev/null 2>&1 && break
		kill -0 "${NODES[i]}" || fail "node $i: $(<"$TMP/node.$i")"
		sleep 0.05
	done
	TOKEN=$(cat "$DIR/token")
	request "$i" POST /v1/regions '{"name": "r", "size": 4194304}' >"$TMP/answer"
done

# count COUNTER: the sum over the nodes that are left, from their counter
# files (base/counter.h).
count() {
	python3 - "$DIR/counters" "$1" "${NODES[@]}" <<'PYTHON'
import glob
import struct
import sys

folder, name, *pids = sys.argv[1:]
total = 0
for pid in pids:
    for path in glob.glob(f"{folder}/{pid}-*"):
        data = open(path, "rb").read()
        count, at = struct.unpack_from("<II", data, 68)
        for entry in range(at, at + 128 * count, 128):
            if data[entry:entry + 48].rstrip(b"\0").endswith(name.encode()):
                where, = struct.unpack_from("<I", data, entry + 60)
                total += struct.unpack_from("<Q", data, where)[0]
print(total)
PYTHON
}

# pass: 4 MB written to each node; prints how many packets were passed on.
pass() {
	local i before
	before=$(count udp_forwarded)
	for i in "${!NODES[@]}"; do
		AQUIFER_NIC_ADDRESS=$b timeout -k 5 60 "$client" \
			"$DIR/m$i.sock" "$TOKEN" fill r >"$TMP/client" 2>&1 || {
			cat "$TMP/client"
			fail "client of node $i"
		}
	done
	echo $(($(count udp_forwarded) - before))
}

# settle: passes until next to nothing is passed on. The client is new each
# time, and what is sent before it is known where goes by chance.
settle() {
	local passed
	for _ in {1..12}; do
		passed=$(pass) || exit 1
		echo "passed on: $passed of $((${#NODES[@]} * 1024))"
		((passed > 50)) || return 0
	done
	fail "packets are still passed on"
}

settle
kill -KILL "${NODES[0]}"
wait "${NODES[0]}" 2>/dev/null || true
unset 'NODES[0]'
echo "one less"
settle
programs=$(count udp_steered)
received=$(count udp_receives)
echo "$programs programs, $received receives"
((received > 100)) || fail "it was not by UDP"
