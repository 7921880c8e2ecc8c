#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Atomics of several processes through a real switch: forwarded, then replaced
# by SwordBox, then replaced over links that lose, double and reorder.
# shellcheck source=tests/e2e/switch_lib.sh
source "$(dirname "$0")/switch_lib.sh"

need_nic
atomics=$1
export AQUIFER AQUIFER_NIC_PORT=switch:s1

start_switch
timeout -k 5 60 "$atomics" 3 150 || fail "atomics that were forwarded"
stop_switch

start_switch --program swordbox
timeout -k 5 60 "$atomics" 3 150 swordbox s1 || fail "atomics replaced"
stop_switch
counted "d['programs'][0]['replaced'] >= 500"
counted "d['programs'][0]['shared_dead'] == 0"

start_switch --fault loss=1%,dup=1%,reorder=1%,seed=2 --program swordbox \
	--program fault:loss=1%,dup=1%,seed=3
timeout -k 5 100 "$atomics" 2 100 swordbox s1 ||
	fail "atomics replaced, with loss on both sides"
stop_switch
counted "d['programs'][0]['lost'] > 0 and d['programs'][2]['lost'] > 0"
counted "d['programs'][1]['repeated'] > 0"
