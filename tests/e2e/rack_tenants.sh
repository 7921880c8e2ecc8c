#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer tenant` and `aquifer token`: the same on all nodes, and a node that
# fails is named. No secret is on a command line or in a log.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 1 "$AQUIFER" tenant ls
grep -q "aquifer up" "$TMP/err" || fail "no rack: $(<"$TMP/err")"
expect 0 "$AQUIFER" up

# as TOKEN COMMAND...
as() {
	AQUIFER_TOKEN=$1 "${@:2}"
}

expect 0 "$AQUIFER" tenant create team --quota 8M --limit regions=2 --json
team=$(json "$TMP/out" 'd["token"]')
json "$TMP/out" 'd["nodes"] == ["m0", "m1"] and d["failed"] == []' >/dev/null
for node in m0 m1; do
	expect 0 as "$team" "$AQUIFER" region create "on-$node" 1M --node "$node"
done
expect 1 as "$team" "$AQUIFER" region create more 16M
grep -q "quota" "$TMP/err" || fail "quota: $(<"$TMP/err")"
expect 0 "$AQUIFER" tenant quota team 32M --limit regions=9
expect 0 as "$team" "$AQUIFER" region create more 16M --node m0
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '[(t["quota"], t["regions"], t["nodes"]) for t in d["tenants"]
    if t["name"] == "team"] == [(32 << 20, 3, ["m0", "m1"])]' >/dev/null ||
	fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" tenant ls
grep -q "^team  *32M  *18M  *3 " "$TMP/out" || fail "$(<"$TMP/out")"
echo "ok: create, quota, ls"

# The same again is no mistake, another token is.
(umask 077 && echo "$team" >"$TMP/team.token")
expect 0 "$AQUIFER" tenant create team --quota 32M --token-file "$TMP/team.token"
expect 1 "$AQUIFER" tenant create team
grep -q "another token" "$TMP/err" || fail "twice: $(<"$TMP/err")"
expect 0 "$AQUIFER" tenant create second --token-file "$TMP/second.token"
[[ $(stat -c %a "$TMP/second.token") == 600 ]] || fail "the file is open"
! grep -q "$(<"$TMP/second.token")" "$TMP/out" || fail "shown all the same"
chmod 644 "$TMP/second.token"
expect 1 "$AQUIFER" tenant create third --token-file "$TMP/second.token"
grep -q "chmod 600" "$TMP/err" || fail "an open file: $(<"$TMP/err")"

# Another token: not while somebody is connected, unless it is meant so.
mkfifo "$TMP/in"
AQUIFER_TOKEN=$team client death on-m0 <"$TMP/in" >"$TMP/lines" 2>&1 &
PIDS+=("$!")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(<"$TMP/lines")"
expect 1 "$AQUIFER" token new team
grep -q "connections.*--force" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 as "$team" "$AQUIFER" region stat on-m1
expect 0 "$AQUIFER" token new team --force --json
newer=$(json "$TMP/out" 'd["token"]')
[[ $newer != "$team" ]] || fail "the same token"
expect 1 as "$team" "$AQUIFER" region list
grep -q "token is not known" "$TMP/err" || fail "the old token: $(<"$TMP/err")"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '[t["connections"] for t in d["tenants"]
    if t["name"] == "team"] == [0]' >/dev/null || fail "$(<"$TMP/out")"
exec 3>&-
expect 0 as "$newer" "$AQUIFER" region stat on-m1
expect 0 "$AQUIFER" token revoke team
expect 1 as "$newer" "$AQUIFER" region list
expect 1 "$AQUIFER" token revoke default
expect 0 "$AQUIFER" token new team --token-file "$TMP/team.token"
expect 0 as "$team" "$AQUIFER" region stat on-m1
echo "ok: token new, revoke"

# What a tenant has is not lost without a question.
expect 1 "$AQUIFER" tenant rm team
for word in "3 regions" "18M" "on-m0 (1M, node m0)" "on-m1 (1M, node m1)" \
	"more (16M, node m0)" "\-\-force"; do
	grep -q -- "$word" "$TMP/err" || fail "rm without '$word': $(<"$TMP/err")"
done
expect 0 as "$team" "$AQUIFER" region stat on-m1
expect 0 "$AQUIFER" tenant rm team --force --json
json "$TMP/out" 'd["regions"] == 3 and d["nodes"] == ["m0", "m1"]' >/dev/null
expect 1 as "$team" "$AQUIFER" region list
expect 1 "$AQUIFER" tenant rm team
grep -q "no tenant team" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" tenant rm second
echo "ok: rm"

# The rack's own: all nodes and all places of the machine.
old=$("$AQUIFER" token show)
[[ $old == "$(<"$RUNDIR/token")" ]] || fail "show is not what programs use"
[[ $("$AQUIFER" token show --admin) == "$(<"$RUNDIR/admin-token")" ]] ||
	fail "show --admin"
expect 0 "$AQUIFER" token new --json
! grep -q "$old" "$TMP/out" || fail "a token was printed"
[[ $("$AQUIFER" token show) != "$old" ]] || fail "the old one is shown"
expect 0 "$AQUIFER" region create mine 1M
expect 1 as "$old" "$AQUIFER" region list
old=$("$AQUIFER" token show --admin)
expect 0 "$AQUIFER" token new --admin
[[ $("$AQUIFER" token show --admin) != "$old" ]] || fail "admin: the old one"
expect 0 "$AQUIFER" tenant ls
AQUIFER_ADMIN_TOKEN=$old expect 1 "$AQUIFER" tenant ls
expect 1 "$AQUIFER" token new --engine
grep -q "aquifer down" "$TMP/err" || fail "engines: $(<"$TMP/err")"
kept=$("$AQUIFER" token show)
admin=$("$AQUIFER" token show --admin)

# One node is away: the others do it, it is named, and again does the rest.
kill_node m1
expect 1 "$AQUIFER" tenant create late --token-file "$TMP/late.token" --json
json "$TMP/out" 'd["nodes"] == ["m0"] and d["failed"][0]["node"] == "m1"' \
	>/dev/null || fail "$(<"$TMP/out")"
grep -q "node m1" "$TMP/err" || fail "who failed? $(<"$TMP/err")"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" tenant create late --token-file "$TMP/late.token"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '[t["nodes"] for t in d["tenants"] if t["name"] == "late"] ==
    [["m0", "m1"]]' >/dev/null || fail "$(<"$TMP/out")"
late=$(<"$TMP/late.token")

# A reboot: what is in /run is gone.
expect 0 "$AQUIFER" down
cp "$RUNDIR"/*.log "$TMP"
rm -r "$RUNDIR"
expect 0 "$AQUIFER" up
[[ $("$AQUIFER" token show) == "$kept" ]] || fail "another token after a boot"
[[ $("$AQUIFER" token show --admin) == "$admin" ]] || fail "admin: another token"
expect 0 as "$late" "$AQUIFER" region create again 1M
echo "ok: all nodes, and a reboot"

# Wrong words.
expect 2 "$AQUIFER" tenant create
expect 2 "$AQUIFER" tenant create 'a b'
expect 2 "$AQUIFER" tenant create a --quota many
expect 2 "$AQUIFER" tenant create a --limit regions
expect 1 "$AQUIFER" tenant create a --limit apples=1
expect 2 "$AQUIFER" tenant quota late
expect 2 "$AQUIFER" token new late --admin
expect 2 "$AQUIFER" token revoke
expect 1 "$AQUIFER" tenant quota nobody 1M
expect 0 "$AQUIFER" down
for secret in "$team" "$newer" "$kept" "$admin" "$late"; do
	! grep -qs "$secret" "$TMP"/*.log "$RUNDIR"/*.log ||
		fail "a token is in a log"
done
# Of tenants the nodes keep hashes only.
! grep -rqs "$late" "$TMP/state" || fail "a tenant's token is on disk"
echo "ok: words, and no secret in a log"
