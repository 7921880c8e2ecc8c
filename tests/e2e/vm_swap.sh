#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer swap` in a guest with Debian's kernel, on memory nodes of the host.
# here: nbdkit is in the guest, and a program is larger than its cgroup; all pages
# are checked, they are back at the nodes when it has ended, and a node is killed
# in the middle while two copies are kept; off leaves nothing behind. elsewhere:
# nbdkit is on the host, a program is larger than all memory of the guest.
# Arguments: run_client, the plugin, here or elsewhere.
# shellcheck source=tests/e2e/vm/vm_lib.sh
source "$(dirname "$0")/vm/vm_lib.sh"
need nbdkit nbd-client mkswap swapon curl
CLIENT=$1 PLUGIN=$2 WHERE=$3
PORT=18700
RUNDIR=$TMP/$AQUIFER_RACK_NAME
# More than the guest has; and more than the cgroup has.
export VM_MEMORY=160 VM_LIMIT=2300 VM_JOB_LIMIT=300
ALL_MIB=128 SMALL_MIB=32 CGROUP_MIB=12
# An emulated processor beside other work takes long, and long is no failure.
LARGE_LIMIT=900
NODE_PIDS=()

# serve NAME PORT: a memory node on the host, for the guest.
serve() {
	ip netns exec "$VM_NS" env "AQUIFER_NIC_ADDRESS=$VM_HOST" "$AQUIFER" \
		memory --name "$1" --size 512M --listen "$VM_HOST:$2" --insecure \
		>"$TMP/$1" 2>&1 &
	PIDS+=("$!")
	NODE_PIDS+=("$!")
	for _ in {1..200}; do
		! grep -q port "$TMP/$1" || return 0
		sleep 0.05
	done
	fail "no $1: $(cat "$TMP/$1")"
}

# far_bytes NODE: what the node says that it holds in pages. The connections of
# one client all tell of the same pages.
far_bytes() {
	local ask=(curl -sS -m 5 --unix-socket "$RUNDIR/$1.sock"
		-H "Authorization: Bearer $(<"$RUNDIR/token")")
	"${ask[@]}" http://node/v1/connections >"$TMP/connections"
	for id in $(json "$TMP/connections" \
		'" ".join(c["connection"] for c in d["connections"])'); do
		"${ask[@]}" "http://node/v1/connections/$id/pages"
		echo
	done | python3 -c 'import json, sys
print(max([json.loads(l).get("used", 0) for l in sys.stdin if l.strip()] + [0]))'
}

# swap_counts: what the guest's kernel has swapped in and out so far, in pages.
# Sets IN and OUT. Not in a subshell: guest counts its jobs.
swap_counts() {
	guest "echo \$(awk '/^pswp/ { print \$2 }' /proc/vmstat)" >"$TMP/counts" ||
		vm_fail "no counts"
	read -r IN OUT <"$TMP/counts"
}

# start_large MIB [COMMAND]: the program in the guest, after the command, until
# all its memory is filled.
start_large() {
	guest_start "$BEGIN
${2:-}
exec timeout $LARGE_LIMIT \$C linear $1"
	JOB=$VM_JOB
	for _ in $(seq $((LARGE_LIMIT * 20))); do
		! grep -qs filled "$VM_SHARE/log.$JOB" || return 0
		[[ ! -e $VM_SHARE/status.$JOB ]] || break
		sleep 0.05
	done
	vm_fail "not filled: $(cat "$VM_SHARE/log.$JOB")"
}

# end_large: it must have found every page as it was.
end_large() {
	guest_wait "$JOB" "$LARGE_LIMIT" || vm_fail "wrong: $(cat "$VM_SHARE/log.$JOB")"
}

vm_boot 4200
echo "guest up after $SECONDS s"
# The guest has a /tmp of its own, and the build may be in the host's.
mkdir -p "$VM_SHARE/bin/src/apps/nbd"
cp "$AQUIFER" "$CLIENT" "$VM_SHARE/bin"
cp "$PLUGIN" "$VM_SHARE/bin/src/apps/nbd"
serve m0 $PORT
serve m1 $((PORT + 1))
cat >"$VM_SHARE/rack.ini" <<INI
[node m0]
address = $VM_HOST:$PORT
[node m1]
address = $VM_HOST:$((PORT + 1))
[nic]
address = $VM_GUEST
INI
# Not in the shared folder: a 9p file system has no sockets.
BEGIN="export AQUIFER_RUNDIR=/tmp/r AQUIFER_CONFIG=/run/share/rack.ini
export AQUIFER_TOKEN=$(<"$RUNDIR/token")
A=/run/share/bin/aquifer C=/run/share/bin/$(basename "$CLIENT")"

SMALL="echo \$BASHPID >/tmp/cg/small/cgroup.procs || exit 9"

# memory.high: whoever fills memory faster than an emulated processor swaps it
# out is held back; at memory.max alone the kernel kills him.
# rdma_rxe would keep the port of the soft NIC; and a guest this small starts no
# program with an array of 192 MiB, which nbdkit is, unless told to.
guest "$BEGIN
sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1 vm.overcommit_memory=1
ip addr add $VM_GUEST/24 dev eth0
ip link set eth0 up
rmmod rdma_rxe
mkdir -p /tmp/r /tmp/cg && mount -t cgroup2 none /tmp/cg &&
echo +memory >/tmp/cg/cgroup.subtree_control && mkdir /tmp/cg/small &&
echo ${CGROUP_MIB}M >/tmp/cg/small/memory.high &&
echo $((CGROUP_MIB + 6))M >/tmp/cg/small/memory.max && free -m &&
\$A swap status | grep -q off" || vm_fail "the guest"

if [[ $WHERE == here ]]; then
guest "$BEGIN
\$A swap on --size $((SMALL_MIB + 24))M --copies 2 ||
	{ cat /tmp/r/*/swap*.log; exit 1; }
grep nbd0 /proc/swaps && \$A swap status --json && \$A swap on --size 16M
(( \$? == 1 )) || exit 1
\$A down
(( \$? == 1 )) || exit 1
grep -E '^(RssAnon|VmRSS)' /proc/\$(pgrep -x nbdkit)/status
[[ \$(cat /proc/\$(pgrep -x nbdkit)/oom_score_adj) == -1000 ]]" ||
	vm_fail "swap on"
echo "ok: on after $SECONDS s"

start_large "$SMALL_MIB" "$SMALL"
used=$(far_bytes m0)
((used > (SMALL_MIB - CGROUP_MIB - 8) << 20)) || vm_fail "only $used bytes far"
end_large
echo "ok: $SMALL_MIB MiB checked, $((used >> 20)) MiB on m0 (after $SECONDS s)"

# The kernel discards whole clusters (1 MiB) of free pages; some of them stay in
# the caches of its processors.
for _ in {1..100}; do
	left=$(far_bytes m0)
	((left * 8 >= used)) || break
	sleep 0.1
done
((left * 2 < used)) || vm_fail "$left of $used bytes were not given back"
echo "ok: $((left >> 10)) KiB left of $((used >> 10)) after discards"

start_large "$SMALL_MIB" "$SMALL"
kill -KILL "${NODE_PIDS[1]}"
end_large
guest "$BEGIN
\$A swap status && cat /tmp/r/*/swap*.log" || vm_fail "swap status"
echo "ok: a node was killed, no page was lost (after $SECONDS s)"

guest "$BEGIN
\$A swap off && ! grep -q nbd0 /proc/swaps && ! pgrep -x nbdkit &&
\$A swap status | grep -q off && [[ ! -e /sys/block/nbd0/pid ]] &&
! \$A swap off" || vm_fail "swap off"
[[ $(far_bytes m0) == 0 ]] || vm_fail "m0 still holds $(far_bytes m0) bytes"
echo "ok: off after $SECONDS s"
else
# nbdkit beside the nodes, where the guest's want of memory cannot hurt it: the
# kernel keeps a reserve for its own NBD connection.
ip netns exec "$VM_NS" nbdkit -f -i "$VM_HOST" -p 10809 "$PLUGIN" \
	size="$((ALL_MIB + 32))M" >"$TMP/nbdkit" 2>&1 &
PIDS+=("$!")
guest "$BEGIN
for i in \$(seq 50); do
	\$A swap on --server $VM_HOST:10809 && break
	sleep 0.2
done
grep nbd0 /proc/swaps" || vm_fail "swap on --server: $(cat "$TMP/nbdkit")"
swap_counts
in=$IN out=$OUT
# Programs that lose their code to a data page cost an emulated processor dear.
start_large "$ALL_MIB" "sysctl -qw vm.swappiness=200"
end_large
swap_counts
in=$((IN - in)) out=$((OUT - out))
((out > 4000 && in > 4000)) || vm_fail "swapped in $in pages, out $out"
guest "$BEGIN
\$A swap off && ! grep -q nbd0 /proc/swaps" || vm_fail "swap off"
echo "ok: a server elsewhere, $ALL_MIB MiB checked in a guest of $VM_MEMORY" \
	"(in $in, out $out pages; after $SECONDS s)"
fi
: >"$VM_SHARE/stop"
