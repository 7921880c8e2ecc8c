#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An operation that is not answered names the cause, as doctor does: no address
# of the network, a blocked port there or here, packets that get lost. The node's
# control interface answers all the time.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"
: "${AQ_RACK_CLIENT:?run me through meson test}"

need nft
need_nic
make_namespaces
ip netns exec "$NS_A" nft list ruleset >/dev/null 2>&1 || skip "no nft"
unset AQUIFER_TOKEN
mkdir "$TMP/a" "$TMP/b"
printf '[nic]\naddress = 10.77.0.1\n' >"$TMP/a.ini"
printf '[node m0]\naddress = 10.77.0.1:7000\n' >"$TMP/b.ini"
AQUIFER_RUNDIR=$TMP/a AQUIFER_CONFIG=$TMP/a.ini ip netns exec "$NS_A" \
	"$AQUIFER" memory --size 64M --listen 10.77.0.1:7000 --insecure \
	>"$TMP/node" 2>&1 &
PIDS+=("$!")
wait_ns_port "$NS_A" 7000 "$!" || fail "no node: $(<"$TMP/node")"

# elsewhere ADDRESS COMMAND...: on the other machine.
elsewhere() {
	AQUIFER_RUNDIR=$TMP/b AQUIFER_CONFIG=$TMP/b.ini \
		AQUIFER_TOKEN=$(<"$TMP/a/$AQUIFER_RACK_NAME/token") \
		AQUIFER_NIC_ADDRESS=$1 ip netns exec "$NS_B" "${@:2}"
}
# says ADDRESS WORDS: writing there fails, and these are a part of the reason.
says() {
	! elsewhere "$1" env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
		timeout -k 5 60 "$AQ_RACK_CLIENT" basic r >"$TMP/out" 2>&1 ||
		fail "this works: $2"
	grep -q -- "$2" "$TMP/out" || fail "not '$2' but: $(<"$TMP/out")"
	grep -q "node m0 does not answer" "$TMP/out" || fail "$(<"$TMP/out")"
	echo "ok: $2"
}
works() {
	elsewhere 10.77.0.2 env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
		timeout -k 5 60 "$AQ_RACK_CLIENT" basic r >"$TMP/out" 2>&1 ||
		fail "$(<"$TMP/out")"
}
# block NAMESPACE RULE: everything that the rule matches is dropped.
block() {
	ip netns exec "$1" nft -f - <<-RULES
		table inet filter {
			chain input {
				type filter hook input priority 0;
				$2 drop
			}
		}
	RULES
}
unblock() {
	ip netns exec "$1" nft delete table inet filter
}

expect 0 elsewhere 10.77.0.2 "$AQUIFER" region create r 2M
works
says 127.0.0.1 "which does not reach 10.77.0.1: set nic.address = 10.77.0.2"
block "$NS_A" "udp dport 4791"
says 10.77.0.2 "it is blocked.*on 10.77.0.1: nft insert rule"
unblock "$NS_A"
# A firewall on this side: what the node sends is lost.
block "$NS_B" "udp dport 4791"
says 10.77.0.2 "UDP 4791 of 10.77.0.2 is in use, and not by a soft NIC.*nft"
unblock "$NS_B"
block "$NS_B" 'iifname != "lo" udp dport 4791'
says 10.77.0.2 "the NIC at 10.77.0.1 can be reached.*a firewall here"
unblock "$NS_B"
# Only small packets get through.
block "$NS_A" "udp dport 4791 meta length > 700"
says 10.77.0.2 "packets of 1104 bytes get lost.*nic.mtu = 512"
unblock "$NS_A"
works
