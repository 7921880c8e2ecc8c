#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real application: an MPI program on Debian's Open MPI, whose UCX finds the
# soft NIC and nothing else. Between the processes by cable, and by UDP, where
# they share the address.
# shellcheck source=tests/e2e/net_lib.sh
source "$(dirname "$0")/net_lib.sh"

need mpicc mpirun
need_nic
[[ -z $AQ_PRELOAD ]] || skip "mpirun does not hand the sanitizer's runtime on"
mpicc -O2 -o "$TMP/ring" "$(dirname "$0")/net_mpi.c" 2>"$TMP/cc" || {
	cat "$TMP/cc"
	fail "mpicc"
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl=^openib OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx
export UCX_TLS=rc_verbs,ud_verbs,self UCX_LOG_LEVEL=info
unset DISPLAY

# run PORT PROCESSES
run() {
	AQUIFER_NIC_PORT=$1 soft timeout -k 5 60 mpirun --oversubscribe \
		--bind-to none -np "$2" "$TMP/ring" >"$TMP/out" 2>&1 || {
		cat "$TMP/out"
		fail "$2 processes, port $1"
	}
	grep "data as expected" "$TMP/out" || fail "no answer: $(cat "$TMP/out")"
	grep -q "tag(rc_verbs/aq0:1)" "$TMP/out" || {
		cat "$TMP/out"
		fail "UCX did not use the soft NIC"
	}
}

run cable 2
run udp 3
