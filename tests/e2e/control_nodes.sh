#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nodes of a controller: one that ends is down, and counts until it is back or
# forgotten; one that is drained takes nothing new; one that ran alone brings its
# tenants along; a token that is taken back ends connections.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" tenant create lone --quota 16M --token-file "$TMP/l.token"
# The same name, at each node another token.
for node in m0 m1; do
	curl -sS --unix-socket "$RUNDIR/$node.sock" -d '{"name":"twice"}' \
		-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" \
		"http://$node/v1/tenants" >"$TMP/$node.twice"
done
expect 1 "$AQUIFER" node ls
grep -q "no controller" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" down

sed -i '1i [rack]\ncontrol = c0' "$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'sum(len(n["conflicts"]) for n in d.values()) == 1'
expect 0 "$AQUIFER" node ls
grep -q "keeps its own tenant twice" "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" 'sorted(t["name"] for t in d["tenants"]) ==
	["default", "lone", "twice"]' >/dev/null
lone=$(<"$TMP/l.token")
until_ok as "$lone" "$AQUIFER" region create r 10M --node m1
expect 1 as "$lone" "$AQUIFER" region create s 10M --node m0
for node in m0 m1; do
	expect 0 as "$(json "$TMP/$node.twice" 'd["token"]')" curl -sS \
		--unix-socket "$RUNDIR/$node.sock" "http://$node/v1/status"
done
echo "ok: tenants of nodes that ran alone"

# Drained: listed, nothing new, and back. Its quota does not hold the region twice.
expect 1 "$AQUIFER" node drain m1
grep -q "r of tenant lone (10M) stays: .*quota" "$TMP/out" || fail "left: $(<"$TMP/out")"
until_node 'd["m1"]["state"] == "draining"'
until_fails "$AQUIFER" region create probe 1M --node m1
grep -q "drained" "$TMP/err" || fail "$(<"$TMP/err")"
for i in 1 2 3; do
	expect 0 "$AQUIFER" region create "on$i" 1M --json
done
expect 0 "$AQUIFER" node ls --json
expect 0 as "$lone" "$AQUIFER" region delete r
until_node 'd["m1"]["state"] == "drained"'
expect 0 "$AQUIFER" node undrain m1
until_ok "$AQUIFER" region create probe2 1M --node m1
echo "ok: drain"

# Shut out: who is connected with the token is so no more.
until_ok as "$lone" "$AQUIFER" region create r 10M --node m1
mkfifo "$TMP/in"
AQUIFER_TOKEN=$lone client death r <"$TMP/in" >"$TMP/lines" 2>&1 &
PIDS+=("$!")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/lines")"
until_node 'd["m1"]["connections"] > 0'
expect 0 "$AQUIFER" token revoke lone
until_node 'd["m1"]["connections"] == 0'
until_fails as "$lone" "$AQUIFER" region list
exec 3>&-
expect 0 "$AQUIFER" token new lone --token-file "$TMP/l.token"
until_ok as "$lone" "$AQUIFER" region stat r
echo "ok: tokens"

# A node ends: what it may have handed out counts until it is back.
kill -TERM "$(node_pid m1)"
until_node 'd["m1"]["state"] == "down"'
expect 1 as "$lone" "$AQUIFER" region create s 10M --node m0
expect 1 "$AQUIFER" node forget m0
grep -q "m0 is up" "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" node forget nobody
expect 2 "$AQUIFER" node forget 'a b'
expect 0 "$AQUIFER" up
until_node 'd["m1"]["state"] == "up"'
# Started anew it is empty, and gives back what it does not use.
until_ok as "$lone" "$AQUIFER" region create s 10M --node m0
kill -TERM "$(node_pid m1)"
until_node 'd["m1"]["state"] == "down"'
expect 0 "$AQUIFER" node forget m1
until_node '"m1" not in d'
echo "ok: a node that ends"
