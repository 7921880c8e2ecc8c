#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several tokens of one tenant: one that is taken back, or whose time is over,
# ends its own connections and no others; tokens of roles open what they should.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
expect 0 "$AQUIFER" tenant create team --token-file "$TMP/first.token"
expect 0 "$AQUIFER" tenant token team --token-file "$TMP/second.token" --json
[[ $(json "$TMP/out" 'd["id"]') == 1 ]] || fail "$(<"$TMP/out")"
grep -q "$(<"$TMP/second.token")" "$TMP/out" && fail "a token is shown"
until_ok as "$(<"$TMP/first.token")" "$AQUIFER" region create r 4M
until_ok as "$(<"$TMP/second.token")" "$AQUIFER" region stat r

# start NAME: a program that has r open with that token.
start() {
	mkfifo "$TMP/$1.in"
	AQUIFER_TOKEN=$(<"$TMP/$1.token") client death r <"$TMP/$1.in" \
		>"$TMP/$1.lines" 2>&1 &
	PIDS+=("$!")
	eval "exec $2>'$TMP/$1.in'"
	[[ $(wait_line "$TMP/$1.lines" 1) == ready ]] || fail "$(<"$TMP/$1.lines")"
}
start first 3
until_node 'd["m0"]["connections"] > 0'
each=$(json "$TMP/nodes" 'd["nodes"][0]["connections"]')
start second 4
until_node "d['m0']['connections'] == 2 * $each"

expect 0 "$AQUIFER" tenant revoke team 1 --json
json "$TMP/out" 'd["heard"] == ["m0"] and d["unheard"] == [] and d["ms"] > 0' \
	>/dev/null || fail "$(<"$TMP/out")"
until_node "d['m0']['connections'] == $each"
expect 1 as "$(<"$TMP/second.token")" "$AQUIFER" region stat r
echo go >&3
[[ $(wait_line "$TMP/first.lines" 2) == "0 "* ]] || fail "$(<"$TMP/first.lines")"
expect 1 "$AQUIFER" tenant revoke team 1
grep -q "no token 1" "$TMP/err" || fail "$(<"$TMP/err")"
echo "ok: taken back"

# A time that is over, at the controller and at the node.
has=0
for seconds in 2 8 32; do
	expect 0 "$AQUIFER" tenant token team --for "$seconds" --json
	third=$(json "$TMP/out" 'd["token"]')
	sleep 0.1
	if as "$third" "$AQUIFER" region stat r >"$TMP/out" 2>"$TMP/err"; then
		has=1
		break
	fi
done
[[ $has == 1 ]] || fail "it never counts: $(<"$TMP/err")"
until_fails as "$third" "$AQUIFER" region stat r
for _ in {1..600}; do
	expect 0 "$AQUIFER" tenant tokens team --json
	[[ $(json "$TMP/out" 'len(d["tokens"])') == 1 ]] && break
	sleep 0.05
done
[[ $(json "$TMP/out" 'd["tokens"][0]["id"]') == 0 ]] || fail "$(<"$TMP/out")"
expect 0 as "$(<"$TMP/first.token")" "$AQUIFER" region stat r
echo "ok: over"

# ask TOKEN METHOD PATH: the status.
ask() {
	curl -sS -o /dev/null -w '%{http_code}' -X "$2" --unix-socket \
		"$RUNDIR/c0.control.sock" -H "Authorization: Bearer $1" "http://c0$3"
}
for role in admin node; do
	expect 0 "$AQUIFER" tenant token --role "$role" --token-file "$TMP/$role.token"
done
admin=$(<"$TMP/admin.token") node=$(<"$TMP/node.token")
[[ $(ask "$admin" GET /v1/tenants) == 200 ]] || fail "an administrator"
[[ $(ask "$node" GET /v1/tenants) == 403 ]] || fail "a node is no administrator"
[[ $(ask "$node" POST /v1/nodes/m9/leave) == 404 ]] || fail "a node"
expect 0 "$AQUIFER" tenant revoke --role admin 0
[[ $(ask "$admin" GET /v1/tenants) == 401 ]] || fail "it counts on"
expect 0 "$AQUIFER" tenant tokens --role node
grep -q '^1 *none' "$TMP/out" || fail "$(<"$TMP/out")"
expect 2 "$AQUIFER" tenant token --role baker
expect 2 "$AQUIFER" tenant token team --role node
expect 2 "$AQUIFER" tenant token
expect 2 "$AQUIFER" tenant revoke team x
expect 2 "$AQUIFER" tenant revoke --role node
echo "ok: roles"

# What was done and refused is on record, also after the controller's end.
audit() {
	curl -sS --unix-socket "$RUNDIR/c0.control.sock" \
		-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
		http://c0/v1/audit >"$TMP/audit"
	json "$TMP/audit" 'any(e["who"] == "admin" and e["name"] == "team" and
		e["path"] == "/v1/tenants" and e["status"] == 201 for e in d["events"]) and
		any(e["refused"] and e["who"] == "node" and e["status"] == 403
		for e in d["events"])' >/dev/null || fail "$(<"$TMP/audit")"
}
audit
[[ $(ask "$node" GET /v1/audit) == 403 ]] || fail "a node reads the audit log"
kill_node c0
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
audit
log=$TMP/state/$AQUIFER_RACK_NAME/c0.audit.jsonl
[[ $(stat -c %a "$log") == 600 ]] || fail "others can read $log"
for token in "$TMP"/*.token "$RUNDIR"/*-token; do
	! grep -qF "$(<"$token")" "$log" || fail "$token is in $log"
	# Nor on a command line, which everybody on the machine can read.
	! grep -qsaFf "$token" /proc/[0-9]*/cmdline || fail "$token is in the list of processes"
done
echo "ok: on record"
