#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Open MPI's transport by shared memory (vader), and nothing else, between two
# machines: the rank's number says on which one it is. mpirun talks to its ranks by
# loopback, so the machines are on one host.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need mpicc mpirun
[[ -z $AQ_PRELOAD ]] || skip "mpirun does not hand the sanitizer's runtime on"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"

mpicc -O2 -o "$TMP/ring" "$(dirname "$0")/net_mpi.c" 2>"$TMP/cc" ||
	fail "$(<"$TMP/cc")"
cat >"$TMP/rank" <<END
#!/bin/sh
case \$OMPI_COMM_WORLD_LOCAL_RANK in
0) AQUIFER_NIC_ADDRESS=${ADDRESS[a]} ;;
*) AQUIFER_NIC_ADDRESS=${ADDRESS[b]} ;;
esac
export AQUIFER_NIC_ADDRESS
exec "$AQUIFER" run --shared e2e -- "\$@"
END
chmod +x "$TMP/rank"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_osc=pt2pt,rdma
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_btl_vader_backing_directory=/dev/shm
unset DISPLAY

start_rack
timeout -k 5 120 mpirun --oversubscribe --bind-to none -np 2 "$TMP/rank" \
	"$TMP/ring" >"$TMP/mpi" 2>&1 || fail "$(<"$TMP/mpi") $(server_log)"
grep "data as expected" "$TMP/mpi" || fail "no answer: $(<"$TMP/mpi")"
segments_are words
directory_is_sound
