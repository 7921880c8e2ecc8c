#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node is killed: -EHOSTDOWN within the deadline; it comes back: the region is
# lost (-ESTALE), and the same client makes a new one.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
mkfifo "$TMP/in"
DEADLINE_MS=2000 client death r <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "not ready"
kill -KILL "$(node_pid m0)"
echo >&3
for line in 2 3; do
	read -r name seconds < <(wait_line "$TMP/lines" "$line")
	[[ $name == EHOSTDOWN ]] || fail "a dead node gave $name"
	# 2 s, and some for a machine that is busy.
	awk -v s="$seconds" 'BEGIN { exit !(s < 3.0) }' ||
		fail "the deadline of 2 s took $seconds s"
	echo "$name after $seconds s"
done
[[ $(wait_line "$TMP/lines" 4) == EHOSTDOWN ]] || fail "faa on a dead node"
expect 1 "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["state"] == "down"' >/dev/null

expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["nodes"][0]["state"] == "up"' >/dev/null
echo >&3
[[ $(wait_line "$TMP/lines" 5) == ESTALE ]] ||
	fail "a lost region: $(cat "$TMP/lines" "$TMP/errors")"
[[ $(wait_line "$TMP/lines" 6) == 0 ]] ||
	fail "the new region: $(cat "$TMP/errors")"
wait "$app" || fail "the client: $(cat "$TMP/errors")"
exec 3>&-
