#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench paging` runs over all ports; what it counts is as promised on
# any machine, what it times is not judged here.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need_nic

expect 0 "$AQUIFER" bench paging --help
expect 2 "$AQUIFER" bench paging --rounds 0
expect 2 "$AQUIFER" bench paging --port tin
expect 0 "$AQUIFER" bench paging --only pages --quick --json
json "$TMP/out" 'd["bench"] == "paging" and d["commit"] and d["machine"]["cpu"]'
json "$TMP/out" 'd["bounds"]["utilisation"]["kept"]'
# All that was measured, by port and name.
python3 - "$TMP/out" >"$TMP/ports" <<'PYTHON'
import json, sys
ports = {}
for row in json.load(open(sys.argv[1]))["rows"]:
    ports.setdefault(row["port"], {})[row["name"]] = row["value"]
json.dump(ports, sys.stdout)
PYTHON
json "$TMP/ports" 'all(d[p][n] > 0 for p in ("shm", "udp") for n in
	("read4k_rate", "load_rate", "mapped_rate", "two_sided_load_rate",
	"load_ns", "unmapped_ns", "unmapped_naive_ns", "node_cpu_ns_chain"))'
json "$TMP/ports" 'all(d["direct"][n] > 0 for n in ("read4k_rate", "load_rate",
	"mapped_rate", "load_ns", "mapped_ns", "unmapped_ns", "invalidate_ns"))'
json "$TMP/ports" 'd["direct"]["utilisation"] == 1'
json "$TMP/ports" 'd["shm"]["utilisation_static"] < 1'
json "$TMP/out" 'all(d["ratios"][n] > 0 for n in ("load_rate_vs_read4k",
	"load_lat_vs_read4k", "mapped_lat_vs_write4k", "unmapped_lat_vs_write4k",
	"engine_cpu_chain_vs_two_sided", "ablation"))'
