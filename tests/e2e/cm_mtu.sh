#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A path's MTU belongs to the path: rdma_cm uses what fits each of them, and what
# was learned of one changes nothing for another. Who asks for more without
# rdma_cm gets through, too. Usage: cm_mtu.sh CM_CLIENT
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

client=$1
need rping ibv_rc_pingpong ib_write_bw
need_nic
NET_MTU=9000 make_namespaces

# way NAMESPACE DEVICE ADDRESS MTU: what the way to the other one takes.
way() {
	ip -n "$1" route replace 10.77.0.0/24 dev "$2" src "$3" mtu "$4"
}
# pair MTU WORDS...: a server on the one, `call` with these words on the other.
pair() {
	local mtu=$1 pid
	shift
	# The server before this one has left its "listening" here, and the shell
	# in the background empties the file when it gets to run.
	: >"$TMP/server"
	"$@" "${SOFT[@]}" timeout -k 5 60 "$client" listen "$SERVER" 7500 1 \
		>"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	for _ in {1..400}; do
		grep -q listening "$TMP/server" && break
		kill -0 "$pid" || fail "server: $(cat "$TMP/server")"
		sleep 0.05
	done
	in_ns "$NS_B" "$CLIENT" timeout -k 5 60 "$client" call "$SERVER" 7500 \
		${FIRST:+"$FIRST"} >"$TMP/client" 2>&1 || {
		cat "$TMP/server" "$TMP/client"
		fail "call $SERVER $FIRST"
	}
	wait "$pid" || fail "server: $(cat "$TMP/server")"
	grep -q "path MTU $mtu$" "$TMP/client" || fail "$(cat "$TMP/client")"
}
FIRST=

SERVER=10.77.0.1 CLIENT=10.77.0.2
on_a=(env AQUIFER_NIC_ADDRESS=10.77.0.1 ip netns exec "$NS_A")
pair 4096 "${on_a[@]}"
echo "ok: 9000 bytes all the way"

# The way gets narrower under a connection.
"${on_a[@]}" "${SOFT[@]}" timeout -k 5 60 ib_write_bw -x 1 -F -b -D 3 \
	-p 7503 >"$TMP/server" 2>&1 &
wide=$!
PIDS+=("$wide")
wait_ns_port "$NS_A" 7503 "$wide" || true
in_ns "$NS_B" 10.77.0.2 timeout -k 5 60 ib_write_bw -x 1 -F -b -D 3 -p 7503 \
	10.77.0.1 >"$TMP/client" 2>&1 &
narrowed=$!
PIDS+=("$narrowed")
wait_traffic "$NS_B" vb "$narrowed" || true
way "$NS_A" va 10.77.0.1 1500
way "$NS_B" vb 10.77.0.2 1500
wait "$narrowed" || fail "ib_write_bw: $(cat "$TMP/server" "$TMP/client")"
wait "$wide" || fail "ib_write_bw: $(cat "$TMP/server")"
echo "ok: narrower while in use"
way "$NS_A" va 10.77.0.1 9000
way "$NS_B" vb 10.77.0.2 1500
pair 1024 "${on_a[@]}"
way "$NS_B" vb 10.77.0.2 9000
way "$NS_A" va 10.77.0.1 1500
pair 1024 "${on_a[@]}"
echo "ok: one side knows better"
way "$NS_B" vb 10.77.0.2 1500
pair 1024 "${on_a[@]}"

"${on_a[@]}" "${SOFT[@]}" timeout -k 5 60 rping -s -a 10.77.0.1 -p 7501 -V \
	-S 8000 -C 10 >"$TMP/server" 2>&1 &
rping=$!
PIDS+=("$rping")
wait_ns_cm "$NS_A" "$rping" || true
in_ns "$NS_B" 10.77.0.2 timeout -k 5 60 rping -c -a 10.77.0.1 -p 7501 -V \
	-S 8000 -C 10 >"$TMP/client" 2>&1 || fail "rping: $(cat "$TMP"/*er "$TMP/client")"
wait "$rping" || fail "rping -s: $(cat "$TMP/server")"
echo "ok: rping, interface 9000, route 1500"

# The port's own MTU is the interface's, and 4096 bytes leave in fragments.
"${on_a[@]}" "${SOFT[@]}" timeout -k 5 60 ibv_rc_pingpong -g 1 -m 4096 \
	-s 20000 -n 50 -c -p 7502 >"$TMP/server" 2>&1 &
pong=$!
PIDS+=("$pong")
wait_ns_port "$NS_A" 7502 "$pong" || true
in_ns "$NS_B" 10.77.0.2 timeout -k 5 60 ibv_rc_pingpong -g 1 -m 4096 -s 20000 \
	-n 50 -c -p 7502 10.77.0.1 >"$TMP/client" 2>&1 ||
	fail "ibv_rc_pingpong: $(cat "$TMP/server" "$TMP/client")"
wait "$pong" || fail "ibv_rc_pingpong: $(cat "$TMP/server")"
grep -q "leave in fragments" "$TMP/client" || fail "no warning"
echo "ok: a larger path MTU than the path's"

ip -n "$NS_B" route add 203.0.113.77/32 via 10.77.0.1 mtu 1400
SERVER=127.0.0.1 CLIENT=127.0.0.1 FIRST=203.0.113.77
pair 4096 env AQUIFER_NIC_ADDRESS=127.0.0.1 ip netns exec "$NS_B"
echo "ok: an attempt at a narrow way, then a wide one"
