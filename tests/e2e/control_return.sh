#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 1,000 clients that renew their leases, each by a connection of its own: the
# controller is killed and started again, and all of them come back without one
# answer of the kind 5xx, and none has lost its lease.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

port=$(free_port)
printf '[rack]\ncontrol = c0\n[control c0]\nlisten = 127.0.0.1:%s\n[memory m0]\nsize = 64M\n' \
	"$port" >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
python3 -c 'import json; print(json.dumps({"t%d" % i: [] for i in range(1000)}))' \
	>"$TMP/plan"
expect 0 "$AQUIFER" ns mkdir /many --plan "$TMP/plan" --lease 60000

# One address has half of a controller's connections, and those are a quarter of
# its files: so the limit is raised for the clients alone.
(($(ulimit -Hn) >= 8192)) || skip "1,000 clients need a limit of 8,192 files"
(
	ulimit -Sn 4096
	exec python3 "$AQ_SOURCE/tests/e2e/control_return.py" "$port" 1000 \
		"$RUNDIR/token"
) >"$TMP/clients" 2>"$TMP/clients.err" &
clients=$!
PIDS+=("$clients")
until_ok grep -q '^all' "$TMP/clients"
read -r pid _ <"$RUNDIR/c0.pid"
kill -KILL "$pid"
until_ok grep -q '^none' "$TMP/clients"
expect 0 "$AQUIFER" up
wait "$clients" || fail "$(cat "$TMP/clients" "$TMP/clients.err")"
cat "$TMP/clients"
grep -q '^back' "$TMP/clients" || fail "they did not come back"
expect 0 "$AQUIFER" ns stat /many/t999
echo "ok: 1,000 clients come back"
