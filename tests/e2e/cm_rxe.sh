#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdma_cm with a NIC and a connection manager that we did not write: Debian's
# kernel with rdma_rxe. rping -V in both directions, data compared.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/vm.sh
source "$(dirname "$0")/vm.sh"

need rping rdma
need_nic
[[ $(id -u) == 0 ]] || skip "a tap interface needs root"
need_vm
unshare -n sleep 200 &
holder=$!
PIDS+=("$holder")
sleep 0.2
inside=(nsenter -t "$holder" -n env AQUIFER_NIC_ADDRESS=10.77.1.1)
"${inside[@]}" ip tuntap add dev tap0 mode tap || skip "no tap interfaces"
"${inside[@]}" ip addr add 10.77.1.1/24 dev tap0
"${inside[@]}" ip link set tap0 up
"${inside[@]}" ip link set lo up

"${inside[@]}" "${SOFT[@]}" timeout 100 rping -s -a 10.77.1.1 -V -C 10 \
	>"$TMP/server" 2>&1 &
server_pid=$!
PIDS+=("$server_pid")
vm_start tap0 'set -e
modprobe rdma_rxe
modprobe rdma_ucm
ip addr add 10.77.1.2/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0
ulimit -l unlimited
timeout 60 rping -s -a 10.77.1.2 -p 7175 -V -C 10 &
sleep 1
touch ready
timeout 60 rping -c -a 10.77.1.1 -V -C 10
wait $!' "${inside[@]}"
vm_wait ready
status=0
"${inside[@]}" "${SOFT[@]}" timeout 60 rping -c -a 10.77.1.2 -p 7175 -V \
	-C 10 >"$TMP/client" 2>&1 || status=$?
((status == 0)) || {
	cat "$TMP/client" "$TMP/vm/log"
	fail "rping to the kernel: $status"
}
wait "$server_pid" || fail "rping from the kernel: $(cat "$TMP/server")"
vm_wait status
[[ $(cat "$TMP/vm/status") == 0 ]] || fail "in the guest: $(cat "$TMP/vm/log")"
wait "$VM_PID" || true
echo "ok: rping to and from the kernel's rdma_cm ($(cat "$VM_CACHE/version"))"
