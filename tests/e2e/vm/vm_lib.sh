# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts that need a guest: Debian's kernel in QEMU, on a tap
# device in a network namespace of its own. The guest runs the host's programs.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../net_lib.sh"

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VM_HOST=10.88.0.1
# shellcheck disable=SC2034 # for who sources us
VM_GUEST=10.88.0.2
VM_JOB=0
# What a guest has beside the usual: options of QEMU.
VM_DEVICES=()

# The folder that keeps the guest's kernel from one run to the next.
vm_cache() {
	local dir=${XDG_CACHE_HOME:-/var/cache}/aquifer/vm
	if ! mkdir -p "$dir" 2>/dev/null || [[ ! -w $dir ]]; then
		dir=$(dirname "$AQUIFER")/vm
		mkdir -p "$dir"
	fi
	echo "$dir"
}

# vm_net MTU: the namespace $VM_NS with the device tap0 in it. With VM_SWITCH,
# options of a switch or empty, that stands between tap0 and the host's address.
vm_net() {
	((EUID == 0)) || skip "network namespaces need root"
	[[ -c /dev/net/tun ]] || skip "no tap devices here"
	VM_NS=aq-vm-$$
	ip netns add "$VM_NS" 2>/dev/null || skip "no network namespaces here"
	NS+=("$VM_NS")
	ip -n "$VM_NS" link set lo up
	ip -n "$VM_NS" tuntap add dev tap0 mode tap || skip "no tap devices here"
	ip netns exec "$VM_NS" sysctl -qw net.ipv6.conf.tap0.disable_ipv6=1 ||
		true
	ip -n "$VM_NS" link set tap0 mtu "$1" up
	if [[ -z ${VM_SWITCH+set} ]]; then
		ip -n "$VM_NS" addr add "$VM_HOST/24" dev tap0
		return
	fi
	ip -n "$VM_NS" link add host0 type veth peer name switch0 ||
		skip "no veth here"
	ip -n "$VM_NS" addr add "$VM_HOST/24" dev host0
	ip -n "$VM_NS" link set host0 mtu "$1" up
	ip -n "$VM_NS" link set switch0 mtu "$1" up
	# shellcheck disable=SC2086 # several words
	ip netns exec "$VM_NS" "$AQUIFER" switch --name vm --json \
		--port raw:tap0 --port raw:switch0 $VM_SWITCH \
		>"$TMP/switch" 2>"$TMP/switch.err" &
	VM_SWITCH_PID=$!
	PIDS+=("$VM_SWITCH_PID")
}

# vm_boot MTU: starts the guest and waits until it takes jobs. Without KVM and
# beside other work it may take long, and now and then it hangs before the
# first process: then it is started again. Nothing else is ever repeated.
vm_boot() {
	local cache accel=tcg,thread=multi cpu=max,-erms,-fsrm status=0 try
	need qemu-system-x86_64 ip
	cache=$(vm_cache)
	outside bash "$VM_DIR/make_guest.sh" "$cache" >"$TMP/make_guest" 2>&1 ||
		status=$?
	((status != 77)) || skip "$(tail -n 1 "$TMP/make_guest")"
	((status == 0)) || {
		cat "$TMP/make_guest"
		fail "the guest could not be made"
	}
	vm_net "$1"
	# /dev/kvm alone does not mean that an ordinary kernel runs there.
	if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]]; then
		accel=kvm cpu=host
	fi
	for try in 1 2 3; do
		vm_start "$1" "$cache" "$accel" "$cpu" "$try"
		vm_wait "$VM_SHARE/up" 80 && return 0
		echo "start $try of the guest failed: $(tail -n 3 "$TMP/qemu" \
			"$TMP/console" 2>&1 | tr '\n' ' ')"
		kill -TERM "$VM_PID" 2>/dev/null || true
		wait "$VM_PID" || true
	done
	vm_fail "the guest did not start"
}

# tsc_khz: of the host's time stamp counter, which is also the guest's. A guest
# that measures it beside other work may be wrong by far, and its clock too.
tsc_khz() {
	python3 - <<'PY'
import ctypes, mmap, time
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE |
                 mmap.PROT_EXEC)
# rdtsc; shl $32, %rdx; or %rdx, %rax; ret
code.write(bytes.fromhex('0f3148c1e2204809d0c3'))
tsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(
    ctypes.addressof(ctypes.c_char.from_buffer(code)))

def both():
    """Counter and clock of one moment: the closest of some."""
    tries = ((tsc(), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), tsc())
             for _ in range(50))
    a, ns, b = min(tries, key=lambda t: t[2] - t[0])
    return (a + b) / 2, ns

(t0, ns0), _, (t1, ns1) = both(), time.sleep(0.2), both()
print(round((t1 - t0) * 1e6 / (ns1 - ns0)))
PY
}

# vm_start MTU CACHE ACCEL CPU TRY: QEMU in the background.
vm_start() {
	local cache=$2 accel=$3 cpu=$4
	VM_SHARE=$TMP/share.$5
	mkdir "$VM_SHARE"
	cp "$VM_DIR/guest_agent.sh" "$VM_SHARE"
	ip netns exec "$VM_NS" timeout -k 5 "${VM_LIMIT:-400}" \
		qemu-system-x86_64 -machine "${VM_MACHINE:-q35}" -accel "$accel" \
		-cpu "$cpu" -m "${VM_MEMORY:-384}" -smp 2 -nodefaults -no-user-config -display none \
		-serial "file:$TMP/console" -no-reboot \
		-kernel "$cache/vmlinux" -initrd "$cache/initramfs" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off audit=0 \
tsc=reliable tsc_early_khz=$(tsc_khz) no_timer_check cryptomgr.notests init_on_alloc=0 apparmor=0 \
random.trust_cpu=on" \
		-fsdev "local,id=root,path=/,security_model=none,readonly=on,\
multidevs=remap" -device virtio-9p-pci,fsdev=root,mount_tag=root \
		-fsdev "local,id=share,path=$VM_SHARE,security_model=none" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share \
		-netdev tap,id=net,ifname=tap0,script=no,downscript=no \
		-device "virtio-net-pci,netdev=net,romfile=,host_mtu=$1" \
		"${VM_DEVICES[@]}" \
		>"$TMP/qemu" 2>&1 &
	VM_PID=$!
	PIDS+=("$VM_PID")
}

vm_fail() {
	tail -n 30 "$TMP/qemu" "$TMP/console" >&2 || true
	fail "$@"
}

# vm_wait FILE SECONDS: until the guest has made the file.
vm_wait() {
	local end=$((SECONDS + $2))
	while [[ ! -e $1 ]]; do
		if ((SECONDS >= end)) || ! kill -0 "$VM_PID" 2>/dev/null; then
			return 1
		fi
		sleep 0.05
	done
}

# guest_start COMMAND: a line of shell in the guest, in the background. Sets
# VM_JOB, its number.
guest_start() {
	VM_JOB=$((VM_JOB + 1))
	echo "$*" >"$VM_SHARE/job.new"
	mv "$VM_SHARE/job.new" "$VM_SHARE/job.$VM_JOB"
}

# guest_wait JOB SECONDS: the job's status; 125 when it does not end.
guest_wait() {
	vm_wait "$VM_SHARE/status.$1" "$2" || return 125
	return "$(cat "$VM_SHARE/status.$1")"
}

# guest COMMAND: in the guest, to its end; the output comes out here.
guest() {
	local status=0
	guest_start "$*"
	guest_wait "$VM_JOB" "${VM_JOB_LIMIT:-60}" || status=$?
	cat "$VM_SHARE/log.$VM_JOB" 2>/dev/null || true
	return "$status"
}

# vm_host COMMAND...: on the host's soft NIC, inside the namespace.
vm_host() {
	in_ns "$VM_NS" "${VM_NIC:-$VM_HOST}" "$@"
}
