#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A network that goes away for a while is survived; one that stays away ends in
# an error within the time that the application allows.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

need_nic
need ib_read_bw
make_namespaces

# start TIMEOUT SECONDS: READs for so long; pids in $srv and $client.
start() {
	local port
	port=$(free_port)
	in_ns "$NS_A" 10.77.0.1 timeout -k 5 60 ib_read_bw -s 4096 -D "$2" \
		-u "$1" -F -p "$port" >"$TMP/server" 2>&1 &
	srv=$!
	wait_ns_port "$NS_A" "$port" "$srv" || true
	in_ns "$NS_B" 10.77.0.2 timeout -k 5 60 ib_read_bw -s 4096 -D "$2" \
		-u "$1" -F -p "$port" 10.77.0.1 >"$TMP/client" 2>&1 &
	client=$!
	PIDS+=("$srv" "$client")
	wait_traffic "$NS_A" va "$client" || {
		cat "$TMP/client"
		fail "the client did not start"
	}
}

# 4.096 us * 2^18 = 1.07 s, seven retries: half a second is nothing.
start 18 5
ip -n "$NS_A" link set va down
sleep 0.5
ip -n "$NS_A" link set va up
ip -n "$NS_A" addr add fd77::1/64 dev va nodad 2>/dev/null || true
wait "$client" || {
	cat "$TMP/client"
	fail "half a second without a network was not survived"
}
wait "$srv" || true
echo "ok: survived"

# 4.096 us * 2^14 = 67 ms, seven retries: gone after 0.6 s, at most 2.2 s.
start 14 20
ip -n "$NS_A" link set va down
begin=$(date +%s%N)
if wait "$client"; then
	cat "$TMP/client"
	fail "no error though the network is gone"
fi
took=$((($(date +%s%N) - begin) / 1000000))
((took >= 300)) || fail "the error came after $took ms: too early"
# Far less than for ever, also on a busy machine.
((took <= 30000)) || fail "the error took $took ms"
grep -qi "transport retry\|status 12\|Failed status" "$TMP/client" || {
	cat "$TMP/client"
	fail "not the error of exhausted retries"
}
kill "$srv" 2>/dev/null || true
echo "ok: error after $took ms"
