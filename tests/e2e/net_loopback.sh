#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# perftest by UDP on loopback: between two addresses, and between two processes
# that share one, which pass each other's packets on.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

pair() {
	local at_a=$1 at_b=$2 port pid status=0
	shift 2
	need "$1"
	port=$(free_port)
	nic "$at_a" timeout -k 5 60 "$@" -F -p "$port" >"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || true
	nic "$at_b" timeout -k 5 60 "$@" -F -p "$port" 127.0.0.1 \
		>"$TMP/client" 2>&1 || status=$?
	((status == 0)) || kill "$pid" 2>/dev/null || true
	if ! wait "$pid" || ((status != 0)); then
		cat "$TMP/server" "$TMP/client"
		fail "$* between $at_a and $at_b"
	fi
	echo "ok: $* between $at_a and $at_b"
}

need_nic
a=127.$((RANDOM % 250 + 1)).$((RANDOM % 250)).1
b=${a%.1}.2
pair "$a" "$b" ib_read_bw -s 4096 -n 500
pair "$a" "$b" ib_send_lat -s 64 -n 500
pair "$a" "$b" ib_write_bw -s 100000 -n 50
pair "$a" "$b" ib_atomic_lat -n 200
pair "$a" "$b" ib_send_lat -c UD -n 200
pair "$a" "$a" ib_read_bw -s 4096 -n 200
pair "$a" "$a" ib_send_lat -s 64 -n 200
export AQUIFER_NIC_LOSS_PPM=10000
pair "$a" "$b" ib_read_bw -s 65536 -n 200
pair "$a" "$b" ib_write_bw -s 65536 -n 200
# One in a hundred lost: a lone READ waits for a short timer, never for long.
pair "$a" "$b" ib_read_lat -s 64 -n 1000
worst=$(awk '$1 == 64 && NF >= 9 { print int($4 / 1000) }' "$TMP/client")
[[ -n $worst ]] || fail "no times: $(cat "$TMP/client")"
((worst < 1000)) || fail "a READ took $worst ms"
echo "ok: the slowest READ took $worst ms"
unset AQUIFER_NIC_LOSS_PPM

# Several NICs, one per address, each named after its place in the list.
AQUIFER_NIC_ADDRESSES=127.0.0.1,$b soft ibv_devinfo -v >"$TMP/info"
grep -q "hca_id:.*aq1" "$TMP/info" || fail "no second NIC"
grep -q "ffff:$b" "$TMP/info" || {
	cat "$TMP/info"
	fail "the second NIC has not the second address"
}
echo "ok: two NICs"
