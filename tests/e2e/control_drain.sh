#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Draining a node moves tables, regions and indexes away from it while a program
# writes to a table, and says of what finds no room why it stays.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

up_two
expect 0 "$AQUIFER" tenant create team --token-file "$TMP/team.token"
team=$(<"$TMP/team.token")
until_ok as "$team" "$AQUIFER" kv create shop 1000 --node m1
expect 0 "$AQUIFER" kv create own 1000 --node m1
expect 0 "$AQUIFER" region create plain 1M --node m1
expect 0 "$AQUIFER" index create tree --memory 1M --node m1
expect 0 "$AQUIFER" index put tree key1 one
for i in 1 2 3; do
	expect 0 as "$team" "$AQUIFER" kv put shop "key$i" "value$i"
	expect 0 "$AQUIFER" kv put own "key$i" "own$i"
done
# The controller knows all of it.
until_node 'd["m1"]["regions"] >= 6'

# Somebody writes all the time, and none of it is lost.
(
	n=0
	while [[ ! -e $TMP/stop ]]; do
		AQUIFER_TOKEN=$team "$AQUIFER" kv put shop busy "$((n + 1))" \
			--timeout 60000 || exit 1
		n=$((n + 1))
		echo "$n" >"$TMP/count"
	done
) >"$TMP/writer" 2>&1 &
writer=$!
PIDS+=("$writer")
until_ok test -s "$TMP/count"

expect 0 "$AQUIFER" node drain m1 --json
json "$TMP/out" 'sorted((t["tenant"], t["table"]) for t in d["moved"] if "table" in t) ==
	[("default", "own"), ("team", "shop")]' >/dev/null || fail "$(<"$TMP/out")"
json "$TMP/out" 'sorted((t.get("region", "-"), t.get("index", "-"), t["to"]) for t in d["moved"]
	if "table" not in t) == [("-", "tree", "m0"), ("plain", "-", "m0")] and d["stays"] == []' \
	>/dev/null || fail "$(<"$TMP/out")"
touch "$TMP/stop"
wait "$writer" || fail "the writer failed: $(<"$TMP/writer")"
expect 0 as "$team" "$AQUIFER" kv get shop busy
[[ $(<"$TMP/out") == "$(<"$TMP/count")" ]] || fail "$(<"$TMP/out"), not $(<"$TMP/count")"
for i in 1 2 3; do
	expect 0 as "$team" "$AQUIFER" kv get shop "key$i"
	[[ $(<"$TMP/out") == "value$i" ]] || fail "$(<"$TMP/out")"
	expect 0 "$AQUIFER" kv get own "key$i"
	[[ $(<"$TMP/out") == "own$i" ]] || fail "$(<"$TMP/out")"
done
# The token for the move is gone.
expect 0 "$AQUIFER" tenant tokens team --json
[[ $(json "$TMP/out" 'len(d["tokens"])') == 1 ]] || fail "$(<"$TMP/out")"
echo "ok: tables moved"

# Again: nothing is to be done.
until_node 'd["m1"]["state"] == "drained" and d["m1"]["moved"] == 3 and d["m1"]["moving"] == 0'
expect 0 "$AQUIFER" node drain m1
grep -q "nothing is left" "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" index get tree key1
[[ $(<"$TMP/out") == one ]] || fail "$(<"$TMP/out")"
echo "ok: regions and indexes"

# Where there is no room the table stays, and the command says so and fails.
expect 1 "$AQUIFER" node drain m0
grep -q "table own of tenant default: stays: " "$TMP/out" || fail "$(<"$TMP/out")"
grep -q "region plain of tenant default: stays: " "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" kv get own key1
expect 0 "$AQUIFER" node undrain m1
until_ok "$AQUIFER" region create probe 1M --node m1
expect 0 "$AQUIFER" region delete probe
expect 0 "$AQUIFER" node drain m0
expect 0 "$AQUIFER" kv get own key1
[[ $(<"$TMP/out") == own1 ]] || fail "$(<"$TMP/out")"
echo "ok: no room, and room again"
