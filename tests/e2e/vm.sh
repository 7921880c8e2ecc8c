# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced after lib.sh: Debian's own kernel in a small virtual machine, which
# sees the files of this machine read-only and runs a script. Nothing is
# installed: the kernel's package is unpacked into a cache. Without KVM a boot
# takes three seconds.
VM_CACHE=${AQ_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/aquifer-vm}

# The ELF image out of a bzImage: QEMU boots it by its PVH note, which saves the
# guest from decompressing.
vm_extract() {
	python3 - "$1" "$2" <<'PYTHON'
import lzma
import struct
import subprocess
import sys

image = open(sys.argv[1], "rb").read()
offset, length = struct.unpack_from("<II", image, 0x248)
start = ((image[0x1f1] or 4) + 1) * 512 + offset
payload = image[start:start + length]
if payload[:6] == b"\xfd7zXZ\0":
    elf = lzma.LZMADecompressor().decompress(payload)
else:
    elf = subprocess.run(["zstd", "-dcq"], input=payload[:-4], check=True,
                         stdout=subprocess.PIPE).stdout
if elf[:4] != b"\x7fELF":
    sys.exit("no kernel in " + sys.argv[1])
open(sys.argv[2], "wb").write(elf)
PYTHON
}

# First process of the guest: this machine's files below a layer in memory.
vm_stage1() {
	cat <<'SH'
#!/bin/sh
mount -t proc p /proc
mount -t sysfs s /sys
mount -t devtmpfs d /dev
exec </dev/console >/dev/console 2>&1
while read -r m; do insmod "/mod/$m" 2>/dev/null; done </mod/order
p9=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "ro,$p9,cache=loose" hostroot /lower || poweroff -f
mount -t tmpfs t /rw
mkdir /rw/u /rw/w
mount -t overlay -o lowerdir=/lower,upperdir=/rw/u,workdir=/rw/w o /root ||
	poweroff -f
mount -t proc p /root/proc
mount -t sysfs s /root/sys
mount -t devtmpfs d /root/dev
mkdir -p /root/dev/shm /root/lib/modules
mount -t tmpfs t /root/dev/shm
mount -t tmpfs t /root/run
mount -t tmpfs t /root/tmp
mkdir /root/tmp/out
mount -t 9p -o "$p9,cache=none" out /root/tmp/out
mount -t 9p -o "ro,$p9,cache=loose" mods /root/lib/modules
exec switch_root /root /bin/sh /tmp/out/stage2
SH
}

vm_stage2() {
	cat <<'SH'
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C
ip link set lo up
cd /tmp/out
setsid -w bash /tmp/out/script </dev/null >/tmp/out/log 2>&1
echo $? >/tmp/out/status
sync
busybox poweroff -f
SH
}

vm_initramfs() {
	local tree=$1 version=$2 dir=$TMP/initramfs name file
	mkdir -p "$dir"/{bin,dev,proc,sys,mod,lower,rw,root}
	cp "$(command -v busybox)" "$dir/bin/busybox"
	for name in sh mount insmod switch_root mkdir poweroff; do
		ln -s busybox "$dir/bin/$name"
	done
	for name in virtio_pci 9pnet_virtio 9p overlay virtio_net; do
		modprobe -d "$tree" -S "$version" --show-depends "$name" |
			awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r file; do
		name=$(basename "$file" .xz)
		if [[ $file == *.xz ]]; then
			xz -dc "$file" >"$dir/mod/$name"
		else
			cp "$file" "$dir/mod/$name"
		fi
		echo "$name"
	done >"$dir/mod/order"
	vm_stage1 >"$dir/init"
	chmod 755 "$dir/init"
	(cd "$dir" && find . -print0 |
		cpio --null -o -H newc --quiet -R 0:0) >"$3"
}

# need_vm: skips where there is no QEMU or no kernel to be had.
need_vm() {
	local package tree
	need qemu-system-x86_64 busybox cpio depmod modprobe ip nsenter
	if ldd "$(command -v busybox)" >/dev/null 2>&1; then
		skip "busybox-static is not installed"
	fi
	if [[ ! -e $VM_CACHE/version ]]; then
		mkdir -p "$VM_CACHE"
		package=$(apt-cache depends linux-image-amd64 2>/dev/null |
			sed -n 's/ *Depends: \(linux-image-.*\)/\1/p' |
			head -n 1)
		[[ -n $package ]] || skip "no package linux-image-amd64"
		(cd "$TMP" && apt-get -qq download "$package") ||
			skip "$package cannot be downloaded"
		VM_VERSION=${package#linux-image-}
		tree=$VM_CACHE/tree
		rm -rf "$tree"
		dpkg-deb -x "$TMP/$package"_*.deb "$tree"
		depmod -b "$tree" "$VM_VERSION"
		vm_extract "$tree/boot/vmlinuz-$VM_VERSION" "$VM_CACHE/vmlinux"
		vm_initramfs "$tree" "$VM_VERSION" "$VM_CACHE/initramfs"
		echo "$VM_VERSION" >"$VM_CACHE/version"
	fi
}

# vm_start TAP SCRIPT [PREFIX...]: boots, and runs the script from the
# folder /tmp/out of the guest, which is $TMP/vm here. Sets VM_PID.
vm_start() {
	local tap=$1 script=$2 out=$TMP/vm accel=tcg,thread=multi
	shift 2
	mkdir -p "$out"
	vm_stage2 >"$out/stage2"
	printf '%s\n' "$script" >"$out/script"
	grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]] && accel=kvm
	local share=security_model=none,multidevs=remap
	"$@" timeout -k 5 120 qemu-system-x86_64 -machine q35 -accel "$accel" \
		-cpu max -m 512 -smp 1 -nodefaults -no-user-config \
		-display none -serial file:"$out/console" -no-reboot \
		-kernel "$VM_CACHE/vmlinux" -initrd "$VM_CACHE/initramfs" \
		-append "console=ttyS0 quiet panic=-1 mitigations=off audit=0 \
tsc=reliable no_timer_check cryptomgr.notests init_on_alloc=0 apparmor=0 \
random.trust_cpu=on" \
		-fsdev "local,id=root,path=/,readonly=on,$share" \
		-device virtio-9p-pci,fsdev=root,mount_tag=hostroot \
		-fsdev "local,id=out,path=$out,$share" \
		-device virtio-9p-pci,fsdev=out,mount_tag=out \
		-fsdev "local,id=mods,path=$VM_CACHE/tree/lib/modules,readonly=on,$share" \
		-device virtio-9p-pci,fsdev=mods,mount_tag=mods \
		-netdev "tap,id=net,ifname=$tap,script=no,downscript=no" \
		-device virtio-net-pci,netdev=net,romfile= \
		>"$out/qemu" 2>&1 &
	VM_PID=$!
	PIDS+=("$VM_PID")
}

# vm_wait FILE: until the guest has made it in /tmp/out.
vm_wait() {
	for _ in {1..600}; do
		[[ -e $TMP/vm/$1 ]] && return 0
		kill -0 "$VM_PID" 2>/dev/null || break
		sleep 0.1
	done
	cat "$TMP"/vm/{qemu,console,log} 2>/dev/null || true
	fail "the guest did not get as far as '$1'"
}
