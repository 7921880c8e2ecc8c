#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Silence: a node that is stopped is suspect, then down, and up again as soon as
# it goes on; one that is killed is down, and its next run joins at once.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == d["m1"]["state"] == "up"'
expect 0 "$AQUIFER" tenant create team --quota 16M --token-file "$TMP/t.token"
team=$(<"$TMP/t.token")
until_ok as "$team" "$AQUIFER" region create r 10M --node m1

kill -STOP "$(node_pid m1)"
until_node 'd["m1"]["state"] == "suspect"'
until_node 'd["m1"]["state"] == "down"'
kill -CONT "$(node_pid m1)"
until_node 'd["m1"]["state"] == "up" and d["m1"]["regions"] == 1'
expect 0 as "$team" "$AQUIFER" region stat r
echo "ok: stopped, and back"

kill_node m1
until_node 'd["m1"]["state"] == "down"'
expect 1 as "$team" "$AQUIFER" region create s 10M --node m0
expect 0 "$AQUIFER" up
until_node 'd["m1"]["state"] == "up" and d["m1"]["regions"] == 0'
until_ok as "$team" "$AQUIFER" region create s 10M --node m0
echo "ok: killed, and started anew"
