#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One side of a stream is killed without a word, while it sends and while it
# receives: the other learns of it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need rstream
need_nic
words=(rstream -S 1000 -C 100000000 -T b)

# The server sees data come in, its client sends.
start_pair() {
	start_cm_server "${words[@]}"
	"${SOFT[@]}" timeout -k 5 60 "${words[@]}" -s 127.0.0.1 \
		>"$TMP/client" 2>&1 &
	CLIENT_PID=$!
	PIDS+=("$CLIENT_PID")
	sleep 0.5
	kill -0 "$CLIENT_PID" || fail "client: $(cat "$TMP/client")"
}

# reset_of PID FILE: it ended by itself, and said why.
reset_of() {
	local status=0
	wait "$1" || status=$?
	((status != 0 && status != 124)) || fail "$2 ended with $status"
	grep -q "Connection reset by peer" "$TMP/$2" ||
		fail "$2 says: $(cat "$TMP/$2")"
}

start_pair
kill -KILL "$(pgrep -P "$SERVER_PID" | head -n 1)"
reset_of "$CLIENT_PID" client
wait "$SERVER_PID" || true
start_pair
kill -KILL "$(pgrep -P "$CLIENT_PID" | head -n 1)"
reset_of "$SERVER_PID" server
echo "ok: both sides notice"
