#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three controllers on an etcd of three: a standby names the leader, and commands
# and nodes follow. Killed, the leader is replaced, and what was answered is
# there. Stopped and continued, it changes nothing any more.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/etcd_lib.sh
source "$(dirname "$0")/etcd_lib.sh"

leader
# Nodes and commands first ask one that does not lead.
first=$(((LEADER + 1) % 3))
cat >"$TMP/rack.ini" <<END
[rack]
control = http://127.0.0.1:${CONTROL_PORT[$first]},$CONTROLLERS
[memory m0]
size = 64M
[memory m1]
size = 64M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
code=$(change "${CONTROL_PORT[$first]}" nobody)
if [[ $code == 421 ]]; then
	json "$TMP/answer" 'd["leader"].startswith("http://127.0.0.1:")' >/dev/null
else
	# Only where it leads by now.
	leader
	((LEADER == first)) || fail "a standby answers $code: $(<"$TMP/answer")"
	until_ok "$AQUIFER" tenant rm nobody
fi
until_ok "$AQUIFER" tenant create team --quota 32M --token-file "$TMP/t.token"
team=$(<"$TMP/t.token")
until_ok as "$team" "$AQUIFER" region create a 10M --node m0
echo "ok: a standby names the leader"

leader
dead=$LEADER
kill -KILL "${CONTROL_PID[$dead]}"
# Opened, read, made without a quota: nothing of that needs a controller.
expect 0 as "$team" "$AQUIFER" region stat a
expect 0 "$AQUIFER" region create mine 1M
until_ok "$AQUIFER" tenant create after --token-file "$TMP/a.token"
leader
((LEADER != dead)) || fail "the dead one leads"
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up" and d["m0"]["used"] > 0'
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{t["name"]: t["quota"] for t in d["tenants"]} ==
	{"default": 0, "team": 32 << 20, "after": 0}' >/dev/null
until_ok as "$team" "$AQUIFER" region create b 10M --node m1
expect 1 as "$team" "$AQUIFER" region create c 20M --node m1
grep -q "quota of 32M for the rack" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["controller"]["leads"]' >/dev/null
control_start "$dead"
wait_line "$TMP/c$dead" 1 >/dev/null
echo "ok: the leader is killed"

# What it was asked while it was stopped it must not do afterwards.
leader
old=$LEADER
kill -STOP "${CONTROL_PID[$old]}"
change "${CONTROL_PORT[$old]}" late >"$TMP/code" &
PIDS+=("$!")
asking=$!
until_ok "$AQUIFER" tenant create between --token-file "$TMP/b.token"
leader
((LEADER != old)) || fail "the stopped one leads"
kill -CONT "${CONTROL_PID[$old]}"
wait "$asking" || fail "no answer of the one that was stopped"
[[ $(<"$TMP/code") == 421 || $(<"$TMP/code") == 503 ]] ||
	fail "the one that was stopped says $(<"$TMP/code"): $(<"$TMP/answer")"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" 'sorted(t["name"] for t in d["tenants"]) ==
	["after", "between", "default", "team"]' >/dev/null
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
echo "ok: the leader is stopped, and goes on"

# A clean end: nobody has to wait for a lease.
leader
kill -TERM "${CONTROL_PID[$LEADER]}"
wait "${CONTROL_PID[$LEADER]}" || fail "it ended badly: $(<"$TMP/c$LEADER.err")"
until_ok "$AQUIFER" tenant rm between
! grep -qs "$team" "$TMP"/c?.err || fail "a token in a log"
echo "ok: the leader ends"
