#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three machines: the memory node, the engine and the application each have an
# address and a runtime directory of their own, and find each other by rack.ini;
# all packets take UDP.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1
net=127.$((RANDOM % 250 + 1)).$((RANDOM % 250))
export AQUIFER_NIC_PORT=udp

# machine N COMMAND...
machine() {
	local n=$1
	shift
	AQUIFER_RUNDIR=$TMP/machine$n AQUIFER_NIC_ADDRESS=$net.$n "$@"
}

# serve N ROLE OPTION...: in the background; its port is in PORT.
serve() {
	# Not by machine(): the process itself must be the one to be ended.
	AQUIFER_RUNDIR=$TMP/machine$1 AQUIFER_NIC_ADDRESS=$net.$1 \
		"$AQUIFER" "${@:2}" --listen 127.0.0.1:0 --json \
		>"$TMP/$2" 2>"$TMP/$2.err" &
	PIDS+=("$!")
	for _ in {1..200}; do
		PORT=$(json "$TMP/$2" 'd["port"]' 2>/dev/null) && return 0
		sleep 0.05
	done
	fail "no $2: $(cat "$TMP/$2" "$TMP/$2.err")"
}

mkdir "$TMP"/machine{1,2,3}
serve 1 memory --size 16M
printf '[node m0]\naddress = 127.0.0.1:%s\n' "$PORT" >"$TMP/rack.ini"
serve 2 engine
printf '[engine e0]\naddress = 127.0.0.1:%s\n' "$PORT" >>"$TMP/rack.ini"
AQUIFER_TOKEN=$(cat "$TMP/machine1/$AQUIFER_RACK_NAME/token")
AQUIFER_ENGINE_TOKEN=$(cat "$TMP/machine2/$AQUIFER_RACK_NAME/engine-token")
export AQUIFER_TOKEN AQUIFER_ENGINE_TOKEN
expect 0 machine 3 "$AQUIFER" region create r 1M
expect 0 machine 3 client many r 2 0.7
cat "$TMP/out"
# Both the engine and the node have sent packets to the other two.
expect 0 machine 3 "$AQUIFER" status --json
json "$TMP/out" 'd["engines"][0]["counters"]["reads"] > 100 and
	d["engines"][0]["direct_ops"] == 0' >/dev/null
