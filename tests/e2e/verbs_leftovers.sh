#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 leaves no socket behind, only its file, which is in nobody's way; an
# end of its own leaves neither.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need ibv_rc_pingpong
need_nic
port=$(free_port)
# The sockets of this test's rack that live.
sockets() {
	local file
	for file in "$AQUIFER_RUNDIR/$AQUIFER_RACK_NAME"/*:127.0.0.1:*; do
		awk -v n="/${file##*/}" \
			'substr($8, length($8) - length(n) + 1) == n' \
			/proc/net/unix
	done
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
shopt -s nullglob
left=("$AQUIFER_RUNDIR/$AQUIFER_RACK_NAME"/*:127.0.0.1:*)
# At most those of the three that were killed.
((${#left[@]} <= 3)) || fail "${#left[@]} sockets were left: ${left[*]}"
