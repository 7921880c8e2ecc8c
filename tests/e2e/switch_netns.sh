#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A switch between two network namespaces, unseen by both: TCP with offloads,
# UDP and raw NICs, with and without a program that parses, and with loss.
# shellcheck source=tests/e2e/switch_lib.sh
source "$(dirname "$0")/switch_lib.sh"

need_nic
make_switched_namespaces

start_switch --port raw:sa --port raw:sb
# A megabyte of TCP, which leaves the kernel in pieces of 64 KiB.
timeout 20 ip netns exec "$NS_A" python3 -c 'import socket
s = socket.create_server(("10.77.0.1", 5000))
c = s.accept()[0]
n = 0
while True:
    b = c.recv(65536)
    if not b:
        break
    n += len(b)
assert n == 1 << 20, n' &
tcp=$!
PIDS+=("$tcp")
wait_ns_port "$NS_A" 5000 "$tcp" || true
timeout 20 ip netns exec "$NS_B" python3 -c 'import socket
s = socket.create_connection(("10.77.0.1", 5000))
s.sendall(b"x" * (1 << 20))'
wait "$tcp" || fail "TCP through the switch"
ns_pair 60 ib_read_lat -s 64 -n 100
ns_pair 60 ib_write_bw -s 65536 -n 100
ns_pair 60 ib_send_lat -c UD -n 100
stop_switch
counted "d['counters']['forwarded'] > 500 and len(d['ports']) == 2"
counted "all(p['tx_full'] == 0 for p in d['ports'])"

start_switch --port raw:sa --port raw:sb --fault loss=1%,dup=1%,seed=4
ns_pair 60 ib_read_bw -s 65536 -n 100
ns_pair 60 ib_atomic_bw -n 200
ns_pair 60 ib_send_bw -s 4096 -n 300
stop_switch
counted "d['programs'][0]['lost'] > 0 and d['programs'][0]['duplicated'] > 0"
counted "all(p['rx_damaged'] == 0 for p in d['ports'])"

expect 1 ip netns exec "$SWITCH_NS" "$AQUIFER" switch \
	--port raw:nosuch
grep -q "nosuch" "$TMP/err" || fail "a missing interface is not named"
