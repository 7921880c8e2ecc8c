#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Memory that the kernel lends to devices never leaves under their hands: files
# are read into far memory by O_DIRECT, AIO and io_uring while other threads want
# its place, and every word is checked. Before, such pages were copied out and
# dropped, and what arrived later was lost. Memory that is registered with the
# soft NIC does leave, and comes back for it.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
PINNED=$2 UNMOVED=$3 REGION=$4
SEED=${AQ_SEED:-$RANDOM}
echo "seed $SEED (AQ_SEED)"

# tmpfs has O_DIRECT since Linux 6.6, but does not pin.
dir=$(mktemp -d /var/tmp/aquifer-e2e.XXXXXX)
on_disk_cleanup() {
	local status=$?
	rm -rf "$dir"
	set +e
	(exit "$status")
	rack_cleanup
}
trap on_disk_cleanup EXIT
"$PINNED" make "$dir/file" "$SEED"
"$PINNED" make "$dir/other" "$SEED"

# play PROGRAM PLAY...: with 2 MiB of 13 to 20 here. PREFIX starts it.
PREFIX=()
play() {
	local status=0
	far 2M "${PREFIX[@]}" "$@" "$SEED" >"$TMP/out" || status=$?
	shift
	if ((status == 77)); then
		echo "not tried: $1: /var/tmp has no O_DIRECT"
		return 0
	fi
	((status == 0)) || fail "$1: $status $(cat "$TMP/err")"
	[[ $(cat "$TMP/out") == ok ]] || fail "$1: $(cat "$TMP/out")"
	report 'd["loads"] + d["prefetched"] > 500 and d["stored"] > 500'
	report 'd["lost_pages"] == 0'
	echo "ok: $1 ($(json "$TMP/report" 'd["pinned"]') pinned)"
}

can_move=$(python3 - <<'EOF'
import ctypes, fcntl, os, struct
fd = ctypes.CDLL(None).syscall(323, os.O_CLOEXEC)
api = fcntl.ioctl(fd, 0xC018AA3F, struct.pack("QQQ", 0xAA, 0, 0))
print(struct.unpack("QQQ", api)[1] >> 16 & 1)
EOF
)
if ((can_move)); then
	for name in pread aio ring registered registered-buffered; do
		play "$PINNED" "$name" "$dir/file"
	done
	# Registered pages stay where they are: they were tried, and refused.
	report 'd["pinned"] > 100'
	play "$PINNED" write "$dir/other"
	play "$PINNED" unpinned "$dir/file"
fi
play "$PINNED" splice -
play "$UNMOVED" rights
report 'd["resident_peak"] <= d["local"] and d["pinned"] == 0'
play "$UNMOVED" lock
report 'd["pinned"] > 0'
play "$UNMOVED" fork

# A region of the soft NIC is not pinned: its threads wait for pages like any
# other.
regions() {
	[[ -z $AQ_PRELOAD ]] || return 0 # not in a program on far memory
	need_nic
	PREFIX=("$AQUIFER" exec --nic soft --)
	play "$REGION" self
	play "$REGION" pair
	play "$REGION" grant
	PREFIX=()
}
regions

# As on older kernels: programs are told that there is no such thing, and what
# they do instead is right.
FAR_OPTIONS=(--no-move)
play "$PINNED" refused "$dir/file"
play "$UNMOVED" rights
play "$UNMOVED" lock
play "$UNMOVED" fork
regions
