#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Info names the NIC, its limits, the settings and the library.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
expect 0 "$AQUIFER" info --nic soft --json
json "$TMP/out" 'd["nic"] == "soft"' >/dev/null
json "$TMP/out" 'd["device"]["name"] and len(d["device"]["gids"]) >= 2' \
	>/dev/null
json "$TMP/out" 'd["limits"]["queue_pairs"] >= 1000
    and d["limits"]["device_memory_bytes"] >= 256 * 1024
    and d["limits"]["sge"] == 32' >/dev/null
json "$TMP/out" 'd["keys"]["random_bits"] == 24' >/dev/null
libdir=$(json "$TMP/out" 'd["verbs_libdir"]')
[[ $libdir == /* && -e $libdir/libibverbs.so.1 ]] ||
	fail "verbs_libdir is $libdir"
expect 0 "$AQUIFER" info --nic soft
grep -q '^verbs_libdir' "$TMP/out" || fail "no verbs_libdir in words"
