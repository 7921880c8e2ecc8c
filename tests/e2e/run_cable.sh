#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cable to a memory node is out for longer than the node waits for others:
# a program under `aquifer run` waits, goes on and finds its pages right. One
# that was told to have less patience loses them.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"
CLIENT=$1

need_nic
make_namespaces
python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)' ||
	skip "userfaultfd is not allowed here"

AQUIFER_NIC_ADDRESS=10.77.0.1 ip netns exec "$NS_A" "$AQUIFER" memory --size 128M \
	--listen 10.77.0.1:7000 --insecure >"$TMP/node" 2>&1 &
node=$!
PIDS+=("$node")
wait_ns_port "$NS_A" 7000 "$node" || fail "$(cat "$TMP/node")"
printf '[nic]\naddress = 10.77.0.2\n[node m0]\naddress = 10.77.0.1:7000\n' \
	>"$TMP/client.ini"
AQUIFER_TOKEN=$(cat "$TMP/$AQUIFER_RACK_NAME/token")
export AQUIFER_TOKEN

# Packets of this network are smaller than a page, and chains work nevertheless.
expect 0 env AQUIFER_RUNDIR="$TMP/b" AQUIFER_CONFIG="$TMP/client.ini" \
	ip netns exec "$NS_B" timeout 60 "$AQUIFER" run --local 1M --mode chain \
	-- "$CLIENT" random 3

# begin NAME OPTION...: a program that compares its pages again and again.
begin() {
	local name=$1
	shift
	: >"$TMP/$name"
	AQUIFER_RUNDIR=$TMP/b AQUIFER_CONFIG=$TMP/client.ini ip netns exec "$NS_B" \
		"$AQUIFER" run --local 4M "$@" -- "$CLIENT" loop 12 \
		>"$TMP/$name" 2>"$TMP/$name.err" &
	PIDS+=("$!")
}

# wait_for FILE PATTERN: until a line of it matches.
wait_for() {
	for _ in {1..600}; do
		! grep -q "$2" "$1" || return 0
		sleep 0.05
	done
	fail "no '$2': $(cat "${1%.err}.err")"
}

# By regions, and by chains.
declare -A pids
begin patient
pids[patient]=$!
begin chained --mode chain
pids[chained]=$!
begin hasty --patience 2
hasty=$!
wait_for "$TMP/patient" .
wait_for "$TMP/chained" .
wait_for "$TMP/hasty" .
ip -n "$NS_A" link set va down
sleep 7 # the node waits 5 s for others
ip -n "$NS_A" link set va up
wait_for "$TMP/patient.err" 'answers again'
wait_for "$TMP/chained.err" 'answers again'
status=0
wait "$hasty" || status=$?
((status == 135)) || fail "hasty: $status instead of SIGBUS: $(cat "$TMP/hasty.err")"
# They have compared all of them since.
sleep 1
for name in patient chained; do
	kill -TERM "${pids[$name]}"
	status=0
	wait "${pids[$name]}" || status=$?
	((status == 143)) || fail "$name: $status $(cat "$TMP/$name.err")"
	! grep -Eq 'lost|^line' "$TMP/$name.err" || fail "$(cat "$TMP/$name.err")"
done
