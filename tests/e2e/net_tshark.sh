#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the UDP port puts on a wire: every RC and UD opcode of the standard, over
# IPv4 and IPv6, and the messages of a connection; each ICRC is computed anew,
# and tshark finds nothing malformed.
# Argument: the checker.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

CHECK=$1
need dumpcap tshark python3 ethtool rping nft
need_nic
make_namespaces
# The kernel would pass batches whole on a veth pair: no packet would be seen.
for pair in "$NS_A va" "$NS_B vb"; do
	read -r ns dev <<<"$pair"
	ip netns exec "$ns" ethtool -K "$dev" tx-udp-segmentation off gso off \
		gro off 2>/dev/null || true
done
ip netns exec "$NS_A" dumpcap -q -P -B 32 -i va -w "$TMP/pcap" \
	-f "udp port 4791" >"$TMP/dumpcap" 2>&1 &
CAPTURE=$!
PIDS+=("$CAPTURE")
for _ in {1..100}; do
	[[ ! -s $TMP/pcap ]] || break
	sleep 0.05
done

# check ADDRESS_A ADDRESS_B
check() {
	local port pid
	port=$(free_port)
	in_ns "$NS_A" "$1" timeout -k 5 60 "$CHECK" -a -g 1 -n 50 -p "$port" \
		>"$TMP/server" 2>&1 &
	pid=$!
	PIDS+=("$pid")
	wait_ns_port "$NS_A" "$port" "$pid" || true
	in_ns "$NS_B" "$2" timeout -k 5 60 "$CHECK" -a -g 1 -n 50 -p "$port" \
		10.77.0.1 >"$TMP/client" 2>&1 || {
		cat "$TMP/server" "$TMP/client"
		fail "the checker between $1 and $2"
	}
	wait "$pid" || fail "the checker: $(cat "$TMP/server")"
	echo "ok: $1 and $2"
}

check 10.77.0.1 10.77.0.2
check fd77::1 fd77::2
# Where the NIC cannot find out how the kernel numbers a connected socket's
# packets, here because what it sends to itself is refused, it does without.
for ns in "$NS_A" "$NS_B"; do
	ip netns exec "$ns" nft -f - <<-RULES || skip "nft does not work"
		table inet noecho {
			chain out {
				type filter hook output priority 0;
				udp dport 9 counter drop
			}
		}
	RULES
done
check 10.77.0.1 10.77.0.2
ip netns exec "$NS_B" nft list table inet noecho >"$TMP/rules"
! grep -q "packets 0 " "$TMP/rules" || fail "nothing was refused"
in_ns "$NS_A" 10.77.0.1 timeout -k 5 30 rping -s -a 10.77.0.1 -V -C 3 \
	>"$TMP/server" 2>&1 &
pid=$!
PIDS+=("$pid")
wait_ns_cm "$NS_A" "$pid" || true
in_ns "$NS_B" 10.77.0.2 timeout -k 5 30 rping -c -a 10.77.0.1 -V -C 3 \
	>"$TMP/client" 2>&1 || fail "rping: $(cat "$TMP/client" "$TMP/server")"
wait "$pid" || fail "rping: $(cat "$TMP/server")"
sleep 0.3
kill -INT "$CAPTURE"
wait "$CAPTURE" || true
! grep -q "dropped.*[1-9][0-9]* (pcap" "$TMP/dumpcap" || cat "$TMP/dumpcap"

"$(dirname "$0")/vm/check_icrc.py" "$TMP/pcap" --all >"$TMP/icrc" || {
	cat "$TMP/icrc"
	fail "ICRCs or opcodes"
}
tail -n 1 "$TMP/icrc"
# Queue pairs spread over source ports, so that a network can spread them, too.
awk '$1 == "10.77.0.1" && /source ports/ { n = $NF } END { exit n < 3 }' \
	"$TMP/icrc" || fail "few ports: $(grep ports "$TMP/icrc")"
grep "10.77.0.1 source" "$TMP/icrc"
# RPC over RDMA would be guessed from our payload. The UDP checksum is made
# after the capture, by the device.
HOME=$TMP tshark -n -r "$TMP/pcap" --disable-protocol rpcordma \
	-o udp.check_checksum:FALSE -o ip.check_checksum:TRUE \
	-Y '_ws.malformed || _ws.expert.severity >= 0x600000' \
	>"$TMP/odd" 2>"$TMP/stderr" || {
	cat "$TMP/stderr"
	fail "tshark"
}
[[ ! -s $TMP/odd ]] || fail "odd packets: $(head -n 5 "$TMP/odd")"
echo "tshark: nothing odd"
