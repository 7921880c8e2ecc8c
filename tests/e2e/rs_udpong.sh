#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# udpong: datagrams between two processes, each echoed. Usage: rs_udpong.sh
# WORDS of the client...
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need udpong
need_nic
"${SOFT[@]}" timeout -k 5 60 udpong -b 127.0.0.1 >"$TMP/server" 2>&1 &
udpong=$!
PIDS+=("$udpong")
for _ in {1..400}; do
	# 7174 is its port.
	grep -q ":1C06 " /proc/net/udp && break
	kill -0 "$udpong" || fail "server: $(cat "$TMP/server")"
	sleep 0.05
done
soft timeout -k 5 60 udpong -s 127.0.0.1 "$@" >"$TMP/client" 2>&1 ||
	fail "client: $(cat "$TMP/client")"
grep -q "^custom" "$TMP/client" || fail "no result: $(cat "$TMP/client")"
