#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 leaves nothing behind, and the slot can be used again.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need ibv_rc_pingpong
need_nic
port=$(free_port)
before=$(find /dev/shm -maxdepth 1 -name '*aq*' | wc -l)
for _ in 1 2 3; do
	soft ibv_rc_pingpong -g 1 -p "$port" >"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || fail "server: $(cat "$TMP/server")"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
done
after=$(find /dev/shm -maxdepth 1 -name '*aq*' | wc -l)
((before == after)) || fail "files in /dev/shm: $before, then $after"
if grep -q 'aquifer' /proc/net/unix && ! pgrep -f aquifer >/dev/null; then
	fail "a socket outlived its process"
fi
pingpong ibv_rc_pingpong -g 1 -n 100
