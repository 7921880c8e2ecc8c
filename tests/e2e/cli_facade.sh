#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Exec shows the soft NIC in sysfs and /dev, only to the program, with and
# without root's rights; everything else is there as before.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
unshare -m true 2>/dev/null || unshare -Um true 2>/dev/null ||
	skip "mount namespaces are not allowed here"
# shellcheck disable=SC2016 # for the inner shell
look='set -e
	cd /sys/class/infiniband/aq0
	grep -qx "RoCE v2" ports/1/gid_attrs/types/1
	test "$(cat ports/1/gids/1)" = 0000:0000:0000:0000:0000:ffff:7f00:0001
	grep -qx "4: ACTIVE" ports/1/state
	test -e device/net/"$(cat ports/1/gid_attrs/ndevs/1)"/mtu
	grep -qx aq0 /sys/class/infiniband_verbs/uverbs0/ibdev
	test -c /dev/infiniband/uverbs0
	test -w /dev/infiniband/uverbs0
	echo into the void >/dev/null
	ls -A /sys/class /dev | sort'
listing() {
	(
		ls -A /sys/class /dev
		printf 'infiniband\ninfiniband\ninfiniband_verbs\n'
	) | sort
}
compare() {
	cat "$TMP/err"
	diff <(listing) "$TMP/out" || fail "$1: other files than before"
	[[ ! -e /dev/infiniband && ! -e /sys/class/infiniband/aq0 ]] ||
		fail "$1: the machine was touched"
}

expect 0 "$AQUIFER" exec --nic soft -- sh -c "$look"
compare "as $(id -un)"
expect 0 "$AQUIFER" exec --nic soft --facade off -- \
	test ! -e /sys/class/infiniband/aq0
expect 2 "$AQUIFER" exec --facade sometimes -- true
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null &&
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		unshare -Um true 2>/dev/null; then
	mkdir "$TMP/nobody"
	chown 65534:65534 "$TMP/nobody"
	chmod 755 "$TMP"
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		test -x "$AQUIFER" || skip "others may not run $AQUIFER"
	expect 0 env AQUIFER_RUNDIR="$TMP/nobody" setpriv --reuid 65534 \
		--regid 65534 --clear-groups \
		"$AQUIFER" exec --nic soft -- sh -c "$look"
	compare "as nobody"
fi
