#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make_guest.sh DIR: puts vmlinux and initramfs of Debian's kernel into DIR, and
# modules that only some guests load into DIR/extra, in the order of DIR/extra/order.
# The package is downloaded and unpacked, never installed. Does nothing when
# they are there and up to date. Exit code 77: cannot be had here.
set -euo pipefail

dir=$1
here=$(cd "$(dirname "$0")" && pwd)
# What our test needs beyond the way to the root folder. crc32_generic: the
# ICRC of rdma_rxe; nft: it can lose packets on purpose; nbd: swap.
modules=(virtio_pci virtio_net 9pnet_virtio 9p overlay crc32_generic rdma_rxe
	rdma_ucm crc32c_generic nf_tables nft_numgen nbd)
# Memory behind CXL.
extra=(cxl_acpi cxl_pci cxl_port cxl_mem cxl_pmem nd_pmem dax_pmem device_dax kmem)
# A newer kernel is no reason to make it again; remove DIR to get one.
key=$(cat "$here/init" "$0" | sha256sum | cut -c1-16)
[[ $(cat "$dir/key" 2>/dev/null) != "$key" ]] || exit 0
for program in apt-get dpkg-deb busybox cpio depmod python3 xz; do
	command -v "$program" >/dev/null || {
		echo "$program is not installed"
		exit 77
	}
done
package=$(apt-cache depends linux-image-amd64 2>/dev/null |
	sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
[[ -n $package ]] || {
	echo "apt does not know linux-image-amd64"
	exit 77
}
mkdir -p "$dir"
work=$(mktemp -d "$dir/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
timeout 300 apt-get -qq -o APT::Sandbox::User=root download "$package" \
	>apt.log 2>&1 || {
	tail -n 1 apt.log
	echo "$package cannot be downloaded"
	exit 77
}
dpkg-deb -x ./*.deb tree
version=${package#linux-image-}
depmod -b tree "$version"
mkdir -p init/{bin,dev,proc,sys,modules,lower,upper,root}
cp "$(command -v busybox)" init/bin/busybox
for applet in sh mount insmod switch_root mkdir poweroff; do
	ln -s busybox "init/bin/$applet"
done
# collect FOLDER MODULE...: each after what it needs, but for what init has. Not by
# modprobe, which leaves out what this machine's own kernel has loaded.
collect() {
	local to=$1 module file name files
	shift
	for module; do
		# "file: what it needs, the first to be loaded last"
		files=$(sed -nE "s|^(.*/${module//_/[-_]}\.ko(\.xz)?):|\1|p" \
			"$tree/modules.dep" | tr ' ' '\n' | tac)
		[[ -n $files ]] || grep -qE "/${module//_/[-_]}\.ko" \
			"$tree/modules.builtin" || {
			echo "no module $module in $package"
			exit 1
		}
		for file in $files; do
			name=$(basename "${file%.xz}")
			[[ ! -e init/modules/$name && ! -e $to/$name ]] || continue
			case $file in
			*.xz) xz -dc "$tree/$file" >"$to/$name" ;;
			*) cp "$tree/$file" "$to/$name" ;;
			esac
			echo "$name" >>"$to/order"
		done
	done
}
tree=$work/tree/lib/modules/$version
collect init/modules "${modules[@]}"
mkdir extra_modules
collect extra_modules "${extra[@]}"
cp "$here/init" init/init
chmod 755 init/init
(cd init && find . -print0 | cpio --null -o -H newc --quiet -R 0:0) >initramfs
python3 "$here/extract_vmlinux.py" "tree/boot/vmlinuz-$version" vmlinux
rm -rf "$dir/extra"
mv vmlinux initramfs "$dir"
mv extra_modules "$dir/extra"
echo "$key" >"$dir/key"
echo "made a guest with $package"
