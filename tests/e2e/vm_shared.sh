#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Coherent shared memory on Debian's own kernel, in a guest: tests that are here run
# there as they are, with a rack of the guest's own. Arguments: coherent_client, the
# example, shm_calls.
# shellcheck source=tests/e2e/vm/vm_lib.sh
source "$(dirname "$0")/vm/vm_lib.sh"
CLIENT=$(realpath "$1") EXAMPLE=$(realpath "$2") CALLS=$(realpath "$3")
# An emulated processor beside other work takes long, and long is no failure.
export VM_LIMIT=1700 VM_JOB_LIMIT=800 VM_MEMORY=1024

vm_boot 1500
guest uname -r >"$TMP/kernel"
kernel=$(<"$TMP/kernel")
echo "Linux $kernel"
# The guest has a /tmp of its own, in which a tree of the host's is not seen.
[[ $AQUIFER != /tmp/* ]] || guest "umount /tmp"
[[ $kernel == 6.1.* ]] || echo "not Debian 12's first kernel, but a later one"

# there TEST ARGUMENT...: the script of that name, in the guest.
there() {
	local script
	script=$(cd "$(dirname "$0")" && pwd)/$1.sh
	guest "AQUIFER='$AQUIFER' AQ_SOURCE='$AQ_SOURCE' TMPDIR=/run" \
		"AQ_RACK_CLIENT='$AQ_RACK_CLIENT' timeout -k 5 750" \
		"bash '$script' ${*:2}" >"$TMP/there" 2>&1 || {
		cat "$TMP/there"
		vm_fail "$1 fails in the guest"
	}
	# Skipped there, it would have shown nothing.
	! grep -q '^SKIP' "$TMP/there" || fail "$1: $(<"$TMP/there")"
	echo "ok: $1 on Linux $kernel"
}

there group_death "$CALLS"
there group_calls "$CALLS"
there coherent_memory "$CLIENT" "$EXAMPLE" 4 2000
