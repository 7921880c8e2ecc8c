#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rack with a controller: nodes join it, a quota holds for all of them
# together, and the rack goes on without it. What was answered survives kill -9.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

cat >"$TMP/rack.ini" <<END
[rack]
control = c0
[memory m0]
size = 64M
[memory m1]
size = 64M
END
expect 1 "$AQUIFER" node ls
grep -q "aquifer up" "$TMP/err" || fail "no reason: $(<"$TMP/err")"
expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["controllers"][0]["name"] == "c0"' >/dev/null
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["controller"]["leads"] and d["controller"]["term"] == 1' \
	>/dev/null
expect 0 "$AQUIFER" status
grep -q "^controller c0 leads" "$TMP/out" || fail "status: $(<"$TMP/out")"
curl -sS --unix-socket "$RUNDIR/c0.control.sock" http://c0/metrics >"$TMP/out"
grep -q '^aquifer_control_leads 1$' "$TMP/out" || fail "metrics: $(<"$TMP/out")"
if command -v promtool >/dev/null; then
	promtool check metrics <"$TMP/out" || fail "promtool"
fi
echo "ok: nodes join"

# One command, one quota, for both nodes.
expect 0 "$AQUIFER" tenant create team --quota 32M --token-file "$TMP/t.token"
team=$(<"$TMP/t.token")
until_ok as "$team" "$AQUIFER" region create a 10M --node m0
until_ok as "$team" "$AQUIFER" region create b 10M --node m1
expect 0 as "$team" "$AQUIFER" region create c 10M --node m0
expect 1 as "$team" "$AQUIFER" region create d 10M --node m1
grep -q "quota of 32M for the rack" "$TMP/err" || fail "$(<"$TMP/err")"
# What one node gives back another one hands out.
expect 0 as "$team" "$AQUIFER" region delete a
expect 0 as "$team" "$AQUIFER" region create d 12M --node m1
expect 0 as "$team" "$AQUIFER" region delete d
expect 0 "$AQUIFER" tenant quota team 48M
until_ok as "$team" "$AQUIFER" region create d 20M --node m1
until_ok sh -c "'$AQUIFER' tenant ls | grep -q '^team  *48M  *40M  *3 '"
expect 1 "$AQUIFER" tenant create team
grep -q "already, with another token" "$TMP/err" || fail "$(<"$TMP/err")"
# The nodes do not change what is the rack's.
curl -sS --unix-socket "$RUNDIR/m0.sock" -X DELETE \
	-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
	http://m0/v1/tenants/team >"$TMP/out"
grep -q "belongs to the whole rack" "$TMP/out" || fail "$(<"$TMP/out")"
echo "ok: one quota"

# Without the controller.
kill_node c0
expect 1 "$AQUIFER" status --json
json "$TMP/out" 'd["controller"]["state"] == "down"' >/dev/null
expect 0 as "$team" "$AQUIFER" region stat b
expect 0 as "$team" "$AQUIFER" region delete b
expect 0 "$AQUIFER" region create mine 1M
expect 1 "$AQUIFER" tenant ls
grep -q "does not answer" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: the rack goes on"

# Back again: all rows, and nodes are up at once.
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up" and d["m1"]["used"] > 0'
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '[t["quota"] for t in d["tenants"] if t["name"] == "team"] ==
	[48 << 20]' >/dev/null
until_ok as "$team" "$AQUIFER" region create b 8M
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["controller"]["term"] == 2' >/dev/null
sqlite3 "$TMP/state/$AQUIFER_RACK_NAME/c0.control.db" \
	'SELECT name, quota FROM tenant' >"$TMP/out" 2>"$TMP/err" ||
	skip "sqlite3 is not installed"
grep -qx "team|50331648" "$TMP/out" || fail "the file: $(<"$TMP/out")"
! grep -rqs "$team" "$TMP/state" "$RUNDIR"/*.log || fail "a token was kept"
expect 0 "$AQUIFER" down --json
json "$TMP/out" 'd["controllers"] == [{"name": "c0", "state": "down"}]' \
	>/dev/null
echo "ok: rows survive"
