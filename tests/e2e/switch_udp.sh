#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A switch with a UDP port: two namespaces reach it by IP only and plug in with
# VXLAN interfaces of their kernels; programs see everything that passes.
# shellcheck source=tests/e2e/switch_lib.sh
source "$(dirname "$0")/switch_lib.sh"

need_nic
need ip
((EUID == 0)) || skip "network namespaces need root"
NS_A=aq-a-$$ NS_B=aq-b-$$ SWITCH_NS=aq-s-$$
for ns in "$NS_A" "$NS_B" "$SWITCH_NS"; do
	ip netns add "$ns" 2>/dev/null || skip "no network namespaces"
	NS+=("$ns")
	ip -n "$ns" link set lo up
done
for i in 1 2; do
	ns=$NS_A
	((i == 1)) || ns=$NS_B
	ip link add under netns "$ns" type veth peer name "under$i" \
		netns "$SWITCH_NS" || skip "no veth"
	ip -n "$SWITCH_NS" addr add "10.78.$i.1/24" dev "under$i"
	ip -n "$SWITCH_NS" link set "under$i" up
	ip -n "$ns" addr add "10.78.$i.2/24" dev under
	ip -n "$ns" link set under up
	ip -n "$ns" link add vx0 type vxlan id 7 remote "10.78.$i.1" \
		dstport 4789 || skip "no VXLAN"
	ip -n "$ns" addr add "10.77.0.$i/24" dev vx0
	ip -n "$ns" link set vx0 up
done

expect 2 "$AQUIFER" switch --name s9 --port udp:nowhere
grep -q "udp:ADDRESS" "$TMP/err" || fail "a wrong address is not explained"
start_switch --port udp:0.0.0.0/7 --fault loss=1%,seed=5
# By UDP sockets, and by whole frames.
ns_pair 60 ib_read_lat -s 64 -n 100
NET_PORT=raw:vx0 ns_pair 60 ib_write_bw -s 65536 -n 50
ns_pair 60 ib_atomic_bw -n 200
# Another network's packets, rubbish, and a host that is only once there.
ip netns exec "$NS_A" python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for p in (b"", b"\x08", bytes([8, 0, 0, 0, 0, 0, 9, 0]) + b"x" * 60,
          bytes([0] * 8) + b"x" * 60):
    s.sendto(p, ("10.78.1.1", 4789))'
stop_switch
counted "len(d['ports']) == 2 and d['ports'][0]['name'].startswith('udp-10.78.')"
counted "d['programs'][0]['lost'] > 0"
counted "all(p['rx_roce'] > 100 and p['rx_damaged'] == 0 for p in d['ports'])"
