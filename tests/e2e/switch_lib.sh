# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts that put a switch between NICs: over cables of one
# host, or between two network namespaces.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

# start_switch OPTION...: in the background, named s1; sets SWITCH_PID. With
# SWITCH_NS it runs in that namespace.
start_switch() {
	local run=()
	: >"$TMP/switch" # of an earlier one
	[[ -z ${SWITCH_NS:-} ]] || run=(ip netns exec "$SWITCH_NS")
	"${run[@]}" "$AQUIFER" switch --name s1 --json "$@" \
		>"$TMP/switch" 2>"$TMP/switch.err" &
	SWITCH_PID=$!
	PIDS+=("$SWITCH_PID")
	for _ in {1..200}; do
		[[ -s $TMP/switch ]] && return
		kill -0 "$SWITCH_PID" 2>/dev/null || break
		sleep 0.05
	done
	cat "$TMP/switch.err" >&2
	fail "the switch does not start"
}

# stop_switch: SIGTERM must end it at once with 0; its last words, a JSON
# object, go to $TMP/switch.json.
stop_switch() {
	local status=0
	kill -TERM "$SWITCH_PID"
	wait "$SWITCH_PID" || status=$?
	((status == 0)) || fail "the switch ended with $status"
	python3 - "$TMP/switch" >"$TMP/switch.json" <<-'END'
		import json, sys
		text = open(sys.argv[1]).read()
		first, at = json.JSONDecoder().raw_decode(text)
		print(json.dumps(json.loads(text[at:])))
	END
}

stats() {
	"$AQUIFER" switch --name s1 --stats >"$TMP/stats.json"
	json "$TMP/stats.json" "$1"
}

# counted EXPRESSION: of the last report.
counted() {
	json "$TMP/switch.json" "$1" >/dev/null ||
		fail "not so in the switch's report: $1"
}

# via_switch PROGRAM...: a pair on this host whose cables end in the switch.
via_switch() {
	local port pid status=0 server_status=0
	need "$1"
	port=$(free_port)
	AQUIFER_NIC_PORT=switch:s1 "${SOFT[@]}" timeout -k 5 60 "$@" -F \
		-p "$port" >"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_port "$port" "$pid" || true
	AQUIFER_NIC_PORT=switch:s1 soft timeout -k 5 60 "$@" -F -p "$port" \
		127.0.0.1 >"$TMP/client" 2>&1 || status=$?
	((status == 0)) || kill "$pid" 2>/dev/null || true
	wait "$pid" || server_status=$?
	if ((status != 0 || server_status != 0)); then
		cat "$TMP/server" "$TMP/client" "$TMP/switch.err"
		fail "$*: client $status, server $server_status"
	fi
	echo "ok: $*"
}

# Two namespaces as make_namespaces makes them, but joined by a switch in a
# third, $SWITCH_NS, whose interfaces are sa and sb.
make_switched_namespaces() {
	need ip
	((EUID == 0)) || skip "network namespaces need root"
	NS_A=aq-a-$$ NS_B=aq-b-$$ SWITCH_NS=aq-s-$$
	local ns i dev
	for ns in "$NS_A" "$NS_B" "$SWITCH_NS"; do
		ip netns add "$ns" 2>/dev/null || skip "no network namespaces"
		NS+=("$ns")
		ip -n "$ns" link set lo up
	done
	for i in 1 2; do
		ns=$NS_A dev=a
		((i == 1)) || ns=$NS_B dev=b
		ip link add "v$dev" netns "$ns" type veth \
			peer name "s$dev" netns "$SWITCH_NS" || skip "no veth"
		ip -n "$ns" addr add "10.77.0.$i/24" dev "v$dev"
		ip -n "$ns" addr add "fd77::$i/64" dev "v$dev" nodad \
			2>/dev/null || true
		ip -n "$ns" link set "v$dev" mtu "${NET_MTU:-1500}" up
		ip -n "$SWITCH_NS" link set "s$dev" mtu "${NET_MTU:-1500}" up
	done
}
