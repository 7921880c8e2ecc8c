#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer swap` in a guest with Debian's kernel: a program larger than its
# memory, every page checked; the pages go back when it ends; and a memory node
# is killed while two copies are kept. Rack, nbdkit and program are all in the
# guest. Arguments: run_client, the plugin.
# shellcheck source=tests/e2e/vm/vm_lib.sh
source "$(dirname "$0")/vm/vm_lib.sh"
need nbdkit nbd-client nbdinfo mkswap swapon
# nbdkit is locked in memory, and so is what it maps of the nodes.
VM_MEMORY=900
vm_boot 1500
echo "guest up after $SECONDS s"
# The guest has a /tmp of its own, and the build may be in the host's.
mkdir -p "$VM_SHARE/bin/src/nbd"
cp "$AQUIFER" "$1" "$VM_SHARE/bin"
cp "$2" "$VM_SHARE/bin/src/nbd"
CLIENT=/run/share/bin/$(basename "$1")
# Not in the shared folder: a 9p file system has no sockets.
BEGIN="export AQUIFER_RUNDIR=/tmp/r AQUIFER_CONFIG=/tmp/rack.ini
A=/run/share/bin/aquifer
used() { nbdinfo --map --totals 'nbd+unix:///?socket=/tmp/r/local/swap-nbd0.nbd' |
	awk '\$4 == \"data\" { print \$1; n = 1 } END { if (!n) print 0 }'; }
"

guest "$BEGIN
modprobe nbd 2>/dev/null
printf '[memory m0]\nsize = 72M\n[memory m1]\nsize = 72M\n' >/tmp/rack.ini
\$A up && \$A swap on --size 64M --copies 2 && cat /proc/swaps &&
grep -q nbd0 /proc/swaps || { cat /tmp/r/local/swap-nbd0.log; exit 1; }" ||
	vm_fail "swap on"
echo "ok: on"

guest "$BEGIN
mkdir -p /tmp/cg && mount -t cgroup2 none /tmp/cg &&
echo +memory >/tmp/cg/cgroup.subtree_control && mkdir /tmp/cg/small &&
echo 12M >/tmp/cg/small/memory.max && echo 0 >/proc/sys/vm/page-cluster &&
(echo \$BASHPID >/tmp/cg/small/cgroup.procs; exec $CLIENT random 32) || exit 1
awk '/pswp/ { print }' /proc/vmstat
(( \$(awk '/pswpin/ { print \$2 }' /proc/vmstat) > 2000 )) &&
(( \$(awk '/pswpout/ { print \$2 }' /proc/vmstat) > 4000 ))" ||
	vm_fail "a program larger than its memory"
echo "ok: every page"

guest "$BEGIN
for i in \$(seq 100); do (( \$(used) < 2 << 20 )) && exit 0; sleep 0.1; done
used; exit 1" || vm_fail "pages that were discarded are still there"
echo "ok: discarded"

guest_start "echo \$BASHPID >/tmp/cg/small/cgroup.procs; exec $CLIENT random 32"
job=$VM_JOB
guest "$BEGIN
sleep 3; kill -KILL \$(cut -d' ' -f1 /tmp/r/local/m1.pid)" || vm_fail "no m1"
guest_wait "$job" 120 ||
	vm_fail "with two copies: $(cat "$VM_SHARE/log.$job")"
echo "ok: a node is lost, no page is"

guest "$BEGIN
\$A swap off && ! grep -q nbd0 /proc/swaps" || vm_fail "swap off"
echo "ok: off"
: >"$VM_SHARE/stop"
