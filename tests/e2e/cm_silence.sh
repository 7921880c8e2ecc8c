#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The process at the other end of an idle rdma_cm connection, on another machine,
# is killed: either side learns of it. Being stopped for a while is no death.
# Usage: cm_silence.sh CM_CLIENT
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

client=$1
need_nic
make_namespaces
export AQUIFER_NIC_CM_KEEPALIVE_MS=6000

# await WORDS FILE: until the file has that line.
await() {
	for _ in {1..900}; do
		grep -q "$1" "$2" && return 0
		sleep 0.05
	done
	cat "$TMP"/server "$TMP"/client*
	fail "no '$1' in ${2##*/}"
}
# start NAME NAMESPACE ADDRESS WORDS...: sets STARTED to the program's pid.
start() {
	local name=$1 ns=$2 address=$3
	shift 3
	AQUIFER_NIC_ADDRESS=$address ip netns exec "$ns" "${SOFT[@]}" "$client" \
		"$@" >"$TMP/$name" 2>&1 &
	STARTED=$!
	PIDS+=("$STARTED")
}

# A second process shares the server's address, and would get its packets.
start other "$NS_A" 10.77.0.1 listen 10.77.0.1 7601 1
start server "$NS_A" 10.77.0.1 listen 10.77.0.1 7600 9
victim=$STARTED
await listening "$TMP/server"
await listening "$TMP/other"
start client1 "$NS_B" 10.77.0.2 wait 10.77.0.1 7600
client1=$STARTED
start client2 "$NS_B" 10.77.0.2 wait 10.77.0.1 7600
client2=$STARTED
await ESTABLISHED "$TMP/client1"
await ESTABLISHED "$TMP/client2"

kill -STOP "$victim"
sleep 2
kill -CONT "$victim"
kill -KILL "$client2"
await 'DISCONNECTED' "$TMP/server"
(($(grep -c DISCONNECTED "$TMP/server") == 1)) ||
	fail "a healthy client was given up: $(cat "$TMP/server")"
await TIMEWAIT_EXIT "$TMP/server"
! grep -q DISCONNECTED "$TMP/client1" ||
	fail "a server that was stopped was given up: $(cat "$TMP/client1")"
echo "ok: the server noticed a client's death, and nobody a stop"

kill -KILL "$victim"
await DISCONNECTED "$TMP/client1"
wait "$client1" || fail "client: $(cat "$TMP/client1")"
echo "ok: the client noticed its server's death"
