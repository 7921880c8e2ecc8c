#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages are built from this tree, installed into a copy of this
# machine's root that only this test sees, used there, and removed: nothing is
# left of them.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

[[ -z $AQ_PRELOAD ]] || skip "packages are not sanitized"
[[ -n ${AQ_OWN_NET:-} ]] || skip "only root can mount the copy"
need dpkg-buildpackage dh dh_python3 git chroot
packages=(aquifer libaquifer1 libaquifer-dev python3-aquifer aquifer-lab)

# The folder is always the same one, for ccache; -ffile-prefix-map names it.
debs=$(dirname "$AQUIFER")/deb
rm -rf "$debs"
mkdir -p "$debs/src"
git -C "$AQ_SOURCE" ls-files -z --cached --others --exclude-standard |
	tar -C "$AQ_SOURCE" --null --ignore-failed-read -T - -cf - |
	tar -C "$debs/src" -xf -
(cd "$debs/src" && DEB_BUILD_OPTIONS="nocheck noautodbgsym" \
	DEB_BUILD_PROFILES=nocheck nice dpkg-buildpackage -us -uc -b) \
	>"$debs/log" 2>&1 || { tail -n 60 "$debs/log"; fail "dpkg-buildpackage"; }
files=()
for package in "${packages[@]}"; do
	file=$(find "$debs" -maxdepth 1 -name "${package}_*.deb")
	[[ -f $file ]] || fail "no package $package"
	files+=("/debs/${file##*/}")
done
if command -v lintian >/dev/null; then
	lintian --fail-on error --allow-root "$debs"/*.changes >"$TMP/lintian" 2>&1 ||
		{ cat "$TMP/lintian"; fail "lintian"; }
fi

# Changes are in a layer of memory above the root. Devices are made, not lent:
# whoever clears up after us must meet none of the machine's.
layer=$TMP/layer root=$TMP/root
mkdir "$layer" "$root"
mount -t tmpfs none "$layer"
mkdir "$layer/upper" "$layer/work"
mount -t overlay none "$root" \
	-o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" 2>"$TMP/err" ||
	skip "no overlay here: $(<"$TMP/err")"
mount -t proc none "$root/proc"
for dir in dev run tmp; do
	mount -t tmpfs none "$root/$dir"
done
mkdir -m 1777 "$root/dev/shm"
for device in null:3 zero:5 random:8 urandom:9; do
	mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
done
mkdir "$root/tmp/debs" && cp "$debs"/*.deb "$root/tmp/debs"
files=("${files[@]/#/\/tmp}")
# inside WORDS...: with the root of a user who just has logged in.
inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive AQUIFER_RUNDIR=/tmp/rack \
		timeout -k 5 300 chroot "$root" "$@"
}
leave() {
	local status=$?
	set +e
	inside aquifer down >/dev/null 2>&1
	for dir in tmp run dev proc; do
		umount "$root/$dir"
	done
	umount "$root" && umount "$layer"
	(exit "$status")
	cleanup
}
trap leave EXIT

rm -rf "$root/var/lib/aquifer" # of a rack of this machine
expect 0 inside dpkg -i "${files[@]}"
expect 0 inside aquifer version
version=$(sed -n '1s/^[^(]*(\(.*\)).*/\1/p' "$AQ_SOURCE/debian/changelog")
grep -qF "$version" "$TMP/out" || fail "not $version: $(<"$TMP/out")"
expect 0 inside aquifer info --nic soft --json
[[ $(json "$TMP/out" 'd["verbs_libdir"]') == /usr/lib/aquifer/verbs ]] ||
	fail "verbs_libdir: $(<"$TMP/out")"
# What it finds is this machine's affair; that it can look is ours.
inside aquifer doctor --json >"$TMP/out" 2>"$TMP/err" || true
json "$TMP/out" 'len(d["checks"]) > 5' >/dev/null || fail "doctor: $(<"$TMP/err")"
inside getent passwd aquifer >"$TMP/out" || fail "no user aquifer"

# A rack, a program built with what is installed, and one that knows only verbs.
expect 0 inside aquifer up
expect 0 inside aquifer region create packed 1M
examples=/usr/share/doc/libaquifer-dev/examples
# shellcheck disable=SC2016 # for the shell inside
expect 0 inside sh -ec 'cd /tmp
	cc -o region '"$examples"'/region.c $(pkg-config --cflags --libs aquifer)
	cc -o verbs '"$examples"'/verbs.c -libverbs
	./region && aquifer exec --nic soft -- ./verbs
	python3 '"$examples"'/kv.py
	cd / && python3 -c "import aquifer; print(aquifer.__file__)"'
for line in 'already locked by 7' ': written by the NIC' 'bob is gone' \
	/usr/lib/python3/dist-packages/aquifer/__init__.py; do
	grep -q "$line" "$TMP/out" || fail "no '$line': $(<"$TMP/out")"
done
expect 0 inside aquifer region delete packed
expect 0 inside aquifer down
expect 0 inside aquifer sim verbs --seed 1
for unit in memory engine switch redis; do
	file=/usr/lib/systemd/system/aquifer-$unit@.service
	grep -q "^ExecStart=/usr/bin/aquifer $unit" "$root$file" ||
		fail "$file does not start /usr/bin/aquifer"
done

expect 0 inside dpkg -r aquifer-lab
! inside aquifer sim verbs --seed 1 >"$TMP/out" 2>&1 ||
	fail "there still is a laboratory"
grep -q 'install aquifer-lab' "$TMP/out" || fail "sim: $(<"$TMP/out")"

mkdir -p "$root/var/lib/aquifer/m0" # as a unit would have made it
expect 0 inside dpkg --purge "${packages[@]}"
rm -rf "$root"/tmp/*
[[ ! -e $root/var/lib/aquifer ]] || fail "the state of nodes is left"
# Left is what dpkg and its triggers keep for themselves, and the user, as
# Debian's policy has it: files may still belong to it.
find "$layer/upper" -mindepth 1 \( -type f -o -type l -o -type c -o \
	-name '*aquifer*' \) -printf '%P\n' | grep -vE \
	'^(var/(lib/dpkg|cache|log)/|var/lib/aquifer$|etc/(ld\.so\.cache|g?shadow-?|passwd-?|group-?|\.pwd\.lock)$)' \
	>"$TMP/left" || true
[[ ! -s $TMP/left ]] || fail "left: $(<"$TMP/left")"
echo "ok: ${#packages[@]} packages came and went"
