#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that hangs costs nothing at the other nodes: a program with many
# connections to both loses none at the healthy one, nor a region that lives
# with one of them. Programs that start meanwhile find the healthy one, too.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need curl

printf '[memory m0]\nsize = 16M\n[memory m1]\nsize = 16M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create on0 1M --node m0
expect 0 "$AQUIFER" region create on1 2M --node m1

# ask METHOD PATH [BODY]: the healthy node; the answer is in $TMP/answer.
ask() {
	curl -sSf --max-time 20 --unix-socket "$RUNDIR/m1.sock" -X "$1" \
		-H "Authorization: Bearer $(<"$RUNDIR/token")" ${3:+-d "$3"} \
		-o "$TMP/answer" "http://m1$2" || fail "$1 $2: curl gave $?"
}

mkfifo "$TMP/in"
client hang on0 on1 <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
count=$(wait_line "$TMP/lines" 1) || fail "not ready: $(cat "$TMP/errors")"
ask GET /v1/connections
cp "$TMP/answer" "$TMP/before"
[[ $(json "$TMP/before" 'len(d["connections"])') == "$count" ]] ||
	fail "not $count connections: $(cat "$TMP/before")"
owner=$(json "$TMP/before" 'd["connections"][-1]["connection"]')
ask POST /v1/regions "{\"name\":\"owned\",\"size\":4096,\"owner\":\"$owner\"}"

# Longer than a node's patience with the silent, which is 5 s.
hung=$(node_pid m0)
kill -STOP "$hung"
worst=0
for _ in {1..20}; do
	ask GET /v1/connections
	silent=$(grep -o '"silent_ms": *[0-9]*' "$TMP/answer" |
		grep -o '[0-9]*$' | sort -n | tail -1 || true)
	((${silent:-0} <= worst)) || worst=$silent
	sleep 0.4
done
echo "longest silence at the healthy node: $worst ms"
python3 - "$TMP/before" "$TMP/answer" <<'EOF' || fail "m1 ended connections"
import json, sys
before, after = ({c["connection"] for c in json.load(open(f))["connections"]}
                 for f in sys.argv[1:])
print(len(before), "connections before,", len(before & after), "of them after")
sys.exit(before != before & after)
EOF
ask GET /v1/regions/owned
# The first node that is asked does not answer.
client basic on1 || fail "a program that starts now"
kill -CONT "$hung"
echo >&3
[[ $(wait_line "$TMP/lines" 2) == 0 ]] || fail "writes to m1: $(cat "$TMP/lines")"
wait "$app" || fail "the client: $(cat "$TMP/errors")"
exec 3>&-
