#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One region over two nodes; when one of them is down, its half is.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

cat >"$TMP/rack.ini" <<-'INI'
	[memory left]
	size = 64M
	[memory right]
	size = 32M
INI
expect 0 "$AQUIFER" up --json
json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["left", "right"]' >/dev/null
expect 0 "$AQUIFER" region create wide 4M --nodes all --stripe 16K --json
json "$TMP/out" 'd["nodes"] == 2 and d["stripe"] == 16384' >/dev/null
client basic wide || fail "wide"
client threads wide || fail "threads"
expect 0 "$AQUIFER" region resize wide 8M
client basic wide || fail "after resize"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'all(n["pool"]["used"] == 4 << 20 for n in d["nodes"])
    and d["regions"] == [{"name": "wide", "size": 8 << 20, "nodes": 2,
                          "stripe": 16384}]' >/dev/null
# The one with the most free memory is taken. A controller chooses by what the
# nodes told it last.
[[ ! -v AQUIFER_RACK_CONTROL ]] ||
	until_node 'd["left"]["used"] == d["right"]["used"] == 4 << 20'
expect 0 "$AQUIFER" region create one 1M
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["regions"] == 2
    and d["nodes"][1]["regions"] == 1' >/dev/null
# More than the smaller node has: nothing is left behind.
expect 1 "$AQUIFER" region create huge 80M --nodes 2
grep -q ENOSPC "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["pool"]["used"] == 9 << 20' >/dev/null

kill_node right
# A region that lost a node is as large as it was, and a node that is down has
# no numbers.
expect 1 "$AQUIFER" status
grep -qE '^right +down( +-){6}$' "$TMP/out" || fail "$(cat "$TMP/out")"
grep -qE '^wide +8M +2 +16K  1 of its nodes down$' "$TMP/out" ||
	fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" region list
grep -qE '^wide +8M +2  -  1 of its nodes down$' "$TMP/out" ||
	fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" region list --json
json "$TMP/out" '[(r["size"], r.get("nodes_missing"))
	for r in d["regions"]] == [(1 << 20, None), (8 << 20, 1)]' >/dev/null ||
	fail "$(cat "$TMP/out")"
export DEADLINE_MS=1500
client basic wide 2>"$TMP/err" && fail "half a region works"
grep -q "EHOSTDOWN" "$TMP/err" || fail "$(cat "$TMP/err")"
client code one read 0 | grep -q '^0 ' || fail "the other node"
