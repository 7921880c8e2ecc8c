#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doctor explains what is wrong between two machines, with the command that
# helps: a blocked port, an MTU that lies, a route that is missing. Each of
# these commands is then tried.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

need nft ib_read_lat
need_nic
make_namespaces

# doctor NAMESPACE NIC_ADDRESS ADDRESS...: the report in $TMP/out.
doctor() {
	local ns=$1 address=$2
	shift 2
	STATUS=0
	AQUIFER_NIC_ADDRESS=$address timeout -k 5 60 ip netns exec "$ns" \
		"$AQUIFER" doctor --json "$@" >"$TMP/out" 2>"$TMP/err" || STATUS=$?
}

# says CHECK STATE WORDS FIX: what the row must contain.
says() {
	json "$TMP/out" "next(c for c in d['checks']
    if c['name'] == '$1' and c['state'] == '$2' and '$3' in c['found']
    and '$4' in c['fix'])" >/dev/null || {
		cat "$TMP/out" "$TMP/err"
		fail "$1 is not $2 with '$3' and '$4'"
	}
	echo "ok: $1: $3"
}

# A NIC to talk to: perftest waits for its client.
nic_in_a() {
	in_ns "$NS_A" 10.77.0.1 timeout -k 5 120 ib_read_lat -F -p "$1" \
		>"$TMP/server" 2>&1 &
	SERVER_PID=$!
	PIDS+=("$SERVER_PID")
	for _ in {1..100}; do
		[[ -z $(ip netns exec "$NS_A" ss -Hulan "sport = :4791") ]] ||
			return 0
		sleep 0.05
	done
	fail "no NIC: $(cat "$TMP/server")"
}

doctor "$NS_B" 10.77.0.2 10.77.0.1
says route:10.77.0.1 ok "from 10.77.0.2 on vb" ""
says port:10.77.0.1 warn "nothing has UDP 4791" "aquifer memory"
says roce-port ok "datagrams arrive" ""
doctor "$NS_B" 10.77.0.2 10.78.0.1
((STATUS == 1)) || fail "no route, and exit code $STATUS"
says route:10.78.0.1 missing "no route" "ip route add 10.78.0.1 dev vb"
ip -n "$NS_B" route add 10.78.0.1 dev vb
doctor "$NS_B" 10.77.0.2 10.78.0.1
says route:10.78.0.1 ok "from 10.77.0.2 on vb" ""
doctor "$NS_B" 10.99.0.1
says roce-port warn "no interface" "ip addr add 10.99.0.1/24"
doctor "$NS_B" 127.0.0.1 10.77.0.1
says route:10.77.0.1 missing "does not reach" "nic.address = 10.77.0.2"
doctor "$NS_B" 127.0.0.1 10.78.0.9
says route:10.78.0.9 missing "no route" "ip route add 10.78.0.9 dev INTERFACE"
doctor "$NS_B" 10.77.0.2 nonsense
((STATUS == 2)) || fail "exit code $STATUS for a word that is no host"
grep -q "no host has this name" "$TMP/err" || fail "$(<"$TMP/err")"
doctor "$NS_B" 127.0.0.1 localhost
says route:localhost ok "from 127.0.0.1 on lo" ""

# A firewall, seen from inside and from outside.
ip netns exec "$NS_A" nft -f - <<-RULES || skip "nft does not work"
	table inet filter {
		chain input {
			type filter hook input priority 0;
			udp dport 4791 drop
		}
	}
RULES
doctor "$NS_A" 10.77.0.1
says roce-port warn "is blocked" "nft insert rule inet filter input"
nic_in_a "$(free_port)"
doctor "$NS_B" 10.77.0.2 10.77.0.1
((STATUS == 1)) || fail "blocked, and exit code $STATUS"
says port:10.77.0.1 missing "blocked" "nft insert rule inet filter input"
ip netns exec "$NS_A" nft insert rule inet filter input udp dport 4791 accept
doctor "$NS_B" 10.77.0.2 10.77.0.1
((STATUS == 0)) || fail "exit code $STATUS though all is well"
says port:10.77.0.1 ok "a soft NIC answers" ""
says mtu:10.77.0.1 ok "up to 1024 bytes, tried" ""
doctor "$NS_A" 10.77.0.1
says roce-port ok "a soft NIC has it" ""

# The other side of the wire carries less than ours says.
ip -n "$NS_B" link set vb mtu 9000
doctor "$NS_B" 10.77.0.2 10.77.0.1
says mtu:10.77.0.1 warn "its MTU is wrong" \
	"ip route replace 10.77.0.1 dev vb mtu 1104"
ip -n "$NS_B" route replace 10.77.0.1 dev vb mtu 1104
doctor "$NS_B" 10.77.0.2 10.77.0.1
says mtu:10.77.0.1 warn "the way has 1104, vb has 9000" "ip route get"
ip -n "$NS_B" link set vb mtu 600
doctor "$NS_B" 10.77.0.2
says roce-mtu warn "vb has 600" "ip link set dev vb mtu 1500"
kill "$SERVER_PID" 2>/dev/null || true
