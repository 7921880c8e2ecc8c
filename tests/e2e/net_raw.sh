#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The raw port between namespaces: raw to raw, and raw to UDP both ways, so that
# what a socket sends and what stands on the wire are the same.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

need_nic
make_namespaces

# raw_pair PORT_A PORT_B PROGRAM...
raw_pair() {
	local port_a=$1 port_b=$2 port pid status=0
	shift 2
	need "$1"
	port=$(free_port)
	NET_PORT=$port_a in_ns "$NS_A" 10.77.0.1 timeout -k 5 60 "$@" -F \
		-p "$port" >"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_ns_port "$NS_A" "$port" "$pid" || true
	NET_PORT=$port_b in_ns "$NS_B" 10.77.0.2 timeout -k 5 60 "$@" -F \
		-p "$port" 10.77.0.1 >"$TMP/client" 2>&1 || status=$?
	((status == 0)) || kill "$pid" 2>/dev/null || true
	if ! wait "$pid" || ((status != 0)); then
		cat "$TMP/server" "$TMP/client"
		fail "$* between $port_a and $port_b"
	fi
	echo "ok: $* between $port_a and $port_b"
}

raw_pair raw:va raw:vb ib_read_bw -s 4096 -n 500
raw_pair raw:va raw:vb ib_send_lat -s 64 -n 500
raw_pair raw:va raw:vb ib_atomic_lat -n 200
raw_pair raw:va auto ib_read_bw -s 65536 -n 100
raw_pair auto raw:vb ib_write_bw -s 65536 -n 100
raw_pair auto raw:vb ib_send_lat -c UD -n 100
NET_PORT=raw:nosuch expect 1 in_ns "$NS_A" 10.77.0.1 ibv_devinfo
grep -q "nosuch" "$TMP/err" || fail "a missing interface is not named"
