#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NICs of one host whose cables end in a switch: without programs, with them,
# with loss, with faults changed while it runs, and with the switch killed and
# started again under a running program.
# shellcheck source=tests/e2e/switch_lib.sh
source "$(dirname "$0")/switch_lib.sh"

need_nic

AQUIFER_NIC_PORT=switch:s1 expect 1 soft ibv_devinfo
grep -q "no switch 's1'" "$TMP/err" "$TMP/out" ||
	fail "a missing switch is not named"

start_switch
expect 1 "$AQUIFER" switch --name s1
grep -q "has a switch 's1' already" "$TMP/err" || fail "two of one name"
via_switch ib_read_lat -s 64 -n 100
via_switch ib_write_bw -s 65536 -n 100
via_switch ib_send_bw -s 4096 -n 200
via_switch ib_send_lat -c UD -n 100
via_switch ib_atomic_lat -n 100
port=$(free_port)
AQUIFER_NIC_PORT=switch:s1 run_pair "$port" qperf -lp "$port" -- \
	sh -c "qperf -lp $port -t 1 127.0.0.1 rc_rdma_read_bw \
		ver_rc_compare_swap && qperf -lp $port 127.0.0.1 quit"
expect 0 "$AQUIFER" top --once --interval 0.2 --json
json "$TMP/out" "d['switches'][0]['pid'] == $SWITCH_PID" >/dev/null ||
	fail "top does not show the switch"
stats "d['counters']['forwarded'] > 1000" >/dev/null || fail "no frames counted"
stop_switch
counted "d['counters']['flooded'] == 0"
[[ ! -e $TMP/$AQUIFER_RACK_NAME/switch-s1.ctl ]] || fail "a socket is left"

# Faults, changed while it runs.
start_switch --fault loss=1%,dup=1%,reorder=1%,corrupt=0.5%,seed=1
via_switch ib_read_bw -s 65536 -n 100
via_switch ib_atomic_bw -n 300
expect 0 "$AQUIFER" switch --name s1 --tell 'fault reload loss=0'
expect 1 "$AQUIFER" switch --name s1 --tell 'fault reload speed=3'
grep -q "speed=3" "$TMP/err" || fail "the wrong option is not named"
expect 1 "$AQUIFER" switch --name s1 --tell 'nobody reload'
via_switch ib_send_lat -n 100
stop_switch
counted "all(d['programs'][0][k] > 0 for k in
	('lost', 'duplicated', 'reordered', 'corrupted'))"

# The switch dies under a program and comes back: queue pairs only see loss.
start_switch
port=$(free_port)
AQUIFER_NIC_PORT=switch:s1 "${SOFT[@]}" timeout -k 5 60 ib_read_bw -F -p "$port" \
	-s 4096 -D 2 -u 16 >"$TMP/server" 2>&1 &
target=$!
PIDS+=("$target")
wait_port "$port" "$target" || true
AQUIFER_NIC_PORT=switch:s1 "${SOFT[@]}" timeout -k 5 60 ib_read_bw -F -p "$port" \
	-s 4096 -D 2 -u 16 127.0.0.1 >"$TMP/client" 2>&1 &
client=$!
PIDS+=("$client")
sleep 1
kill -KILL "$SWITCH_PID"
wait "$SWITCH_PID" 2>/dev/null || true
start_switch
status=0
wait "$client" || status=$?
wait "$target" || status=$?
((status == 0)) || {
	cat "$TMP/server" "$TMP/client" "$TMP/switch.err"
	fail "a restarted switch was noticed"
}
stop_switch
counted "d['counters']['forwarded'] > 100"

expect 0 "$AQUIFER" switch --resources --fault loss=1%
json "$TMP/out" "len(d['resources']) == 2 and d['resources'][1]['bits'] > 0" \
	>/dev/null || fail "resources"
expect 2 "$AQUIFER" switch --resources --program nonsense
expect 2 "$AQUIFER" switch --for never
expect 1 "$AQUIFER" switch --name s9 --stats
expect 2 "$AQUIFER" switch --name s9 --port udp
