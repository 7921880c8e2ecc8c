#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tshark finds in a packet of every opcode what was put there, and nothing odd.
# Usage: wire_tshark.sh WIRE_PCAP_PROGRAM
set -eu

if ! command -v tshark >/dev/null; then
	echo "SKIP: tshark is not installed"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# No personal settings; the RPC-over-RDMA heuristic would guess at our payload.
# RoCEv2 has UDP checksum 0, over IPv6 too.
dissect() {
	HOME=$dir XDG_CONFIG_HOME=$dir tshark -n -r "$dir/pcap" \
		--disable-protocol rpcordma \
		-o ip.check_checksum:TRUE -o udp.check_checksum:TRUE \
		-o udp.ignore_ipv6_zero_checksum:TRUE "$@" 2>"$dir/stderr" ||
		{ cat "$dir/stderr"; exit 1; }
}

"$1" "$dir/pcap" >"$dir/expected"
test -s "$dir/expected"

set -- -T fields -E separator=, -E occurrence=f
for field in bth.opcode bth.se bth.m bth.padcnt bth.tver bth.p_key bth.destqp \
	bth.a bth.psn deth.q_key deth.srcqp reth.va reth.r_key reth.dmalen \
	atomiceth.swapdt atomiceth.cmpdt aeth.syndrome aeth.msn \
	atomicacketh.origremdt immdt ieth invariant.crc; do
	set -- "$@" -e "infiniband.$field"
done
dissect "$@" -e _ws.col.Info | sed 's/ *$//' >"$dir/found"
diff -u "$dir/expected" "$dir/found"

dissect -Y '_ws.malformed || _ws.expert' >"$dir/odd"
if [ -s "$dir/odd" ]; then
	cat "$dir/odd"
	exit 1
fi
echo "$(wc -l <"$dir/found") packets dissected"
