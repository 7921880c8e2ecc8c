#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libaquifer on a device of another libibverbs, as it would be on hardware. The
# other library is the private one that `aquifer exec` puts first, so its device
# is aq0; the library's own soft NIC is not used.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
OFFLOAD_CLIENT=$1
[[ -z $AQ_PRELOAD ]] || skip "two sanitized libraries in one process"

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 2M
expect 0 "$AQUIFER" region create two 1M --nodes 2 --stripe 4K

# foreign MODE DEVICE PROGRAM...
foreign() {
	local mode=$1 device=$2
	shift 2
	AQUIFER_LOG=info timeout -k 5 60 "$AQUIFER" exec --nic soft -- env \
		"AQUIFER_NIC_MODE=$mode" "AQUIFER_NIC_DEVICE=$device" "$@"
}
expect 0 foreign hw aq0 "$AQ_RACK_CLIENT" basic r
grep -q "RDMA device aq0 of the system's" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 foreign auto aq0 "$AQ_RACK_CLIENT" basic r
grep -q "RDMA device aq0 of the system's" "$TMP/err" || fail "$(cat "$TMP/err")"
# Asynchronous operations, with regions on both nodes; what only the soft NIC
# can do is done without.
expect 0 foreign hw "" "$OFFLOAD_CLIENT" many two 2 0.5
grep -q "RDMA device aq0 of the system's" "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["engines"][0]["counters"]["reads"] > 100' >/dev/null

# The soft NIC it is when it is asked for, or nothing is.
for mode in soft auto; do
	device=$([[ $mode == auto ]] || echo aq0)
	expect 0 foreign "$mode" "$device" "$AQ_RACK_CLIENT" basic r
	! grep -q "of the system's" "$TMP/err" || fail "$mode: $(cat "$TMP/err")"
done
expect 1 foreign hw mlx5_7 "$AQ_RACK_CLIENT" basic r
grep -q "no RDMA device mlx5_7 (nic.device), but aq0" "$TMP/err" ||
	fail "$(cat "$TMP/err")"
# Without the private library there is only what the machine has.
if [[ ! -d /sys/class/infiniband ]]; then
	AQUIFER_NIC_MODE=hw expect 1 client basic r
	grep -qE "no RDMA device|needs rdma-core|cannot be read" "$TMP/err" ||
		fail "$(cat "$TMP/err")"
fi
