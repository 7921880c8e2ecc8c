#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An etcd of three that loses members: without one of them, killed or stopped,
# changes go on; without two they are refused with words while all that needs no
# change goes on; and all is well when they are back.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/etcd_lib.sh
source "$(dirname "$0")/etcd_lib.sh"

printf '[rack]\ncontrol = %s\n[memory m0]\nsize = 64M\n' "$CONTROLLERS" \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
until_ok "$AQUIFER" tenant create one --token-file "$TMP/1.token"

# Each in turn, so that etcd's own leader is among them.
for i in 0 1 2; do
	kill -KILL "${ETCD_PID[$i]}"
	until_ok "$AQUIFER" tenant create "killed$i" --token-file "$TMP/k$i.token"
	etcd_start "$i"
	until_ok curl -sSf -m 1 "${ETCD_CLIENT[$i]}/health"
done
kill -STOP "${ETCD_PID[1]}"
until_ok "$AQUIFER" tenant create stopped --token-file "$TMP/s.token"
kill -CONT "${ETCD_PID[1]}"
echo "ok: without one"

kill -KILL "${ETCD_PID[0]}" "${ETCD_PID[2]}"
until_fails "$AQUIFER" tenant create never --token-file "$TMP/n.token"
# The first refusal may be about a change whose end is not known.
until_ok sh -c "! '$AQUIFER' tenant create never --token-file '$TMP/n.token' \
	>'$TMP/words' 2>&1 && grep -q 'nothing was changed' '$TMP/words'"
grep -Eq "etcd|its ledger" "$TMP/words" || fail "no reason: $(<"$TMP/words")"
# Who answers may be one that led last, or one that has read half a second ago.
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '"one" in [t["name"] for t in d["tenants"]]' >/dev/null
expect 0 "$AQUIFER" node ls
expect 0 "$AQUIFER" region create mine 1M
expect 0 "$AQUIFER" region stat mine
echo "ok: without two"

etcd_start 0
etcd_start 2
until_ok curl -sSf -m 1 "${ETCD_CLIENT[0]}/health"
healthy=${EPOCHREALTIME/./}
until_ok "$AQUIFER" tenant create back --token-file "$TMP/b.token"
accepted=${EPOCHREALTIME/./}
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{"one", "killed0", "killed1", "killed2", "stopped", "back"} <=
	set(t["name"] for t in d["tenants"])' >/dev/null
until_node 'd["m0"]["state"] == "up" and d["m0"]["regions"] == 1'
echo "ok: back again, $(((accepted - healthy) / 1000)) ms after etcd was healthy"
