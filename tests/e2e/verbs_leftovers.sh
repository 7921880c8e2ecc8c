#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 leaves nothing behind, and the slot can be used again.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need ibv_rc_pingpong
need_nic
port=$(free_port)
# The abstract sockets of this test's rack.
sockets() {
	awk -v rack="^@aquifer/$AQUIFER_RACK_NAME/" '$8 ~ rack' /proc/net/unix
}
files_before=$(find /dev/shm -maxdepth 1 | wc -l)
for _ in 1 2 3; do
	"${SOFT[@]}" ibv_rc_pingpong -g 1 -p "$port" >"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || fail "server: $(cat "$TMP/server")"
	[[ -n $(sockets) ]] || fail "a NIC without a socket"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	[[ -z $(sockets) ]] || fail "outlived its process: $(sockets)"
done
files_after=$(find /dev/shm -maxdepth 1 | wc -l)
((files_after <= files_before)) || fail "files were left in /dev/shm"
pingpong ibv_rc_pingpong -g 1 -n 100
