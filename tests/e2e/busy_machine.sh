#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of every part that talks to other processes, again and again beside
# programs that spin: slow is not dead, and nobody waits for what a busy machine
# cannot give. Not a test of meson's, because it runs them; see test.sh --full.
# usage: busy_machine.sh BUILD-DIRECTORY [TEST...]
set -euo pipefail

dir=${1:?usage: busy_machine.sh BUILD-DIRECTORY [TEST...]}
shift
rounds=${AQUIFER_BUSY_ROUNDS:-10}
loops=${AQUIFER_BUSY_LOOPS:-16}
tests=("$@")
((${#tests[@]})) || tests=(test_os_slow kv_cli kv_death bench_kv
	offload_data offload_slow offload_faults page_store run_memory
	cm_rping cm_netns cm_pyverbs redis_gateway)

pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
for ((i = 0; i < loops; i++)); do
	while :; do :; done &
	pids+=("$!")
done
# A test's own limit is for a machine that it has to itself.
meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes 1 \
	--timeout-multiplier 20 --repeat "$rounds" --logbase busy-machine \
	"${tests[@]}"
echo "${#tests[@]} tests, $rounds times each, beside $loops busy loops"
