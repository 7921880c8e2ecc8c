# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts that need a network between two NICs: two addresses on
# loopback, or two network namespaces joined by a veth pair.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

NS=()

# cleanup() of lib.sh runs at the end in any case; this goes before it.
net_cleanup() {
	local status=$? ns pid
	for pid in "${PIDS[@]}"; do
		kill -TERM "$pid" 2>/dev/null || true
	done
	for ns in "${NS[@]}"; do
		ip netns del "$ns" 2>/dev/null || true
	done
	set +e
	(exit "$status")
	cleanup
}
trap net_cleanup EXIT

# nic ADDRESS PROGRAM...: on a soft NIC at an address, UDP also on this host.
nic() {
	local address=$1
	shift
	AQUIFER_NIC_ADDRESS=$address AQUIFER_NIC_PORT=${NET_PORT:-udp} soft "$@"
}

# in_ns NAMESPACE ADDRESS PROGRAM...: the same inside a namespace.
in_ns() {
	local ns=$1 address=$2
	shift 2
	AQUIFER_NIC_ADDRESS=$address AQUIFER_NIC_PORT=${NET_PORT:-auto} \
		ip netns exec "$ns" "${SOFT[@]}" "$@"
}

# Two namespaces, $NS_A with 10.77.0.1 and $NS_B with 10.77.0.2 (and fd77::1,
# fd77::2), joined by a veth pair.
make_namespaces() {
	need ip
	((EUID == 0)) || skip "network namespaces need root"
	NS_A=aq-a-$$ NS_B=aq-b-$$
	ip netns add "$NS_A" 2>/dev/null || skip "no network namespaces here"
	NS+=("$NS_A")
	ip netns add "$NS_B"
	NS+=("$NS_B")
	ip link add va netns "$NS_A" type veth peer name vb netns "$NS_B" ||
		skip "no veth here"
	local i ns dev
	for i in 1 2; do
		ns=$NS_A dev=va
		((i == 1)) || ns=$NS_B dev=vb
		ip -n "$ns" addr add "10.77.0.$i/24" dev "$dev"
		ip -n "$ns" addr add "fd77::$i/64" dev "$dev" nodad 2>/dev/null ||
			true
		ip -n "$ns" link set lo up
		ip -n "$ns" link set "$dev" mtu "${NET_MTU:-1500}" up
	done
}

# wait_ns_port NAMESPACE PORT PID: as wait_port, in a namespace.
wait_ns_port() {
	for _ in {1..400}; do
		[[ -z $(ip netns exec "$1" ss -Hltn "sport = :$2") ]] ||
			return 0
		kill -0 "$3" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# wait_ns_cm NAMESPACE PID: until somebody listens there through rdma_cm.
wait_ns_cm() {
	for _ in {1..400}; do
		# shellcheck disable=SC2016 # awk's own dollars
		! ip netns exec "$1" awk '$4 == "00010000" && $8 ~ ":cm:" {
			found = 1 } END { exit !found }' /proc/net/unix ||
			return 0
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# wait_traffic NAMESPACE DEVICE PID: until another megabyte has left there.
wait_traffic() {
	local before now
	before=$(sent_bytes "$1" "$2")
	for _ in {1..400}; do
		now=$(sent_bytes "$1" "$2")
		((now - before < 1000000)) || return 0
		kill -0 "$3" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

sent_bytes() {
	# shellcheck disable=SC2016 # awk's own dollars
	ip netns exec "$1" awk -v dev="$2:" '$1 == dev { print $10 }' \
		/proc/net/dev
}

# ns_pair SECONDS PROGRAM...: server in the one, client in the other namespace.
ns_pair() {
	local limit=$1 pid status=0 server_status=0 port
	shift
	need "$1"
	port=$(free_port)
	in_ns "$NS_A" 10.77.0.1 timeout -k 5 "$limit" "$@" -F -p "$port" \
		>"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_ns_port "$NS_A" "$port" "$pid" || true
	in_ns "$NS_B" 10.77.0.2 timeout -k 5 "$limit" "$@" -F -p "$port" \
		10.77.0.1 >"$TMP/client" 2>&1 || status=$?
	if ((status != 0)); then
		kill "$pid" 2>/dev/null || true
	fi
	wait "$pid" || server_status=$?
	if ((status != 0 || server_status != 0)); then
		cat "$TMP/server" "$TMP/client"
		fail "$*: client $status, server $server_status"
	fi
	echo "ok: $*"
}
