#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that is known only by its TCP address in rack.ini, as from another
# machine: no socket, no token file.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

port=$(free_port)
printf '[memory far]\nsize = 64M\nlisten = 127.0.0.1:%s\n' "$port" \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
printf '[node over]\naddress = 127.0.0.1:%s\n' "$port" >"$TMP/client.ini"
# elsewhere COMMAND...: with a runtime directory of its own.
elsewhere() {
	AQUIFER_RUNDIR=$TMP/elsewhere AQUIFER_CONFIG=$TMP/client.ini "$@"
}
expect 0 elsewhere "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["name"] == "over"
    and d["nodes"][0]["state"] == "up"' >/dev/null
expect 1 elsewhere "$AQUIFER" region create r 2M
grep -q EACCES "$TMP/err" || fail "without a token: $(cat "$TMP/err")"
AQUIFER_TOKEN=$(cat "$RUNDIR/token")
export AQUIFER_TOKEN
expect 0 elsewhere "$AQUIFER" region create r 2M
elsewhere client basic r || fail "basic"
