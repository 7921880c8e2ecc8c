#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two hosts and a network between them: as it is, losing one packet in a hundred,
# slow, and with a path MTU that the packets must respect.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

need_nic
make_namespaces
# The device says what the interface carries.
in_ns "$NS_A" 10.77.0.1 ibv_devinfo >"$TMP/info" || fail "ibv_devinfo"
grep -q "active_mtu:.*1024" "$TMP/info" || fail "MTU 1500 is not 1024"
ns_pair 60 ib_read_bw -s 65536 -n 200
ns_pair 60 ib_send_lat -s 64 -n 500
ns_pair 60 ib_write_bw -s 65536 -n 200

if command -v nft >/dev/null && command -v ethtool >/dev/null; then
	# One packet in a hundred, so the kernel may not pass batches whole.
	for pair in "$NS_A va" "$NS_B vb"; do
		read -r ns dev <<<"$pair"
		ip netns exec "$ns" ethtool -K "$dev" \
			tx-udp-segmentation off gso off 2>/dev/null || true
		ip netns exec "$ns" nft -f - <<-RULES || skip "nft does not work"
			table inet loss {
				chain in {
					type filter hook input priority 0;
					udp dport 4791 numgen random mod 100 0 counter drop
				}
			}
		RULES
	done
	ns_pair 60 ib_read_bw -s 65536 -n 200
	ns_pair 60 ib_send_lat -s 64 -n 500
	ns_pair 60 ib_write_bw -s 65536 -n 200
	ip netns exec "$NS_A" nft list table inet loss >"$TMP/loss"
	grep -q "packets 0 " "$TMP/loss" && fail "nothing was lost"
	for ns in "$NS_A" "$NS_B"; do
		ip netns exec "$ns" nft delete table inet loss
	done
else
	echo "no nft or ethtool: loss is made by the NIC"
	export AQUIFER_NIC_LOSS_PPM=10000
	ns_pair 60 ib_read_bw -s 65536 -n 200
	unset AQUIFER_NIC_LOSS_PPM
fi

if command -v tc >/dev/null &&
	tc -n "$NS_A" qdisc add dev va root tbf rate 50mbit burst 32k \
		limit 100k 2>/dev/null; then
	# A slow way with a short queue: 8 MB take more than a second.
	ns_pair 60 ib_read_bw -s 65536 -n 128
	ns_pair 60 ib_send_lat -s 64 -n 100
	tc -n "$NS_A" qdisc del dev va root
else
	echo "no tbf here: the slow path was not tried"
fi
