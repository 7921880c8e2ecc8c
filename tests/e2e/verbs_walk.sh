#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Walks between two processes: on a cable, where the memory is mapped, over UDP
# with a MAC, and over UDP that loses one packet in twenty. Each is executed once.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
walk=$1
# walks ADDRESS ADDRESS: prints how many requests came again.
walks() {
	timeout -k 5 50 "$walk" "$@" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
	cat "$TMP/out"
}

walks 127.0.0.1 127.0.0.1
export AQUIFER_NIC_PORT=udp
walks 127.0.0.1 127.0.0.2
AQUIFER_NIC_LOSS_PPM=50000 walks 127.0.0.1 127.0.0.2
grep -q "walks, [1-9]" "$TMP/out" || fail "no request came twice"
