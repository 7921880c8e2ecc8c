#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim edm`: figures as tables, JSON and SVG; errors name the option or
# the line of the trace.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

edm() {
	"$AQUIFER" sim edm --quiet "$@"
}

expect 0 edm --nodes 16 --messages 2000
grep -q 'undelivered *0$' "$TMP/out" || fail "messages were lost"
expect 0 edm --nodes 16 --messages 2000 --fabric cxl --json --seeds 2
[[ $(json "$TMP/out" 'd["run"][0]["measure"]') == mean_ns ]] ||
	fail "no mean in the JSON"
for figure in table1 5 7; do
	expect 0 edm --figure "$figure"
	expect 0 edm --figure "$figure" --json
	json "$TMP/out" 'd["sim"]' >/dev/null || fail "figure $figure: no JSON"
done
expect 0 edm --figure 8b --nodes 8 --long-messages 30 --out "$TMP"
grep -q '</svg>' "$TMP/edm-8b.svg" || fail "no picture"

# A progress bar goes to stderr, and only there.
expect 0 "$AQUIFER" sim edm --nodes 8 --messages 500
grep -q '###' "$TMP/err" || fail "no progress"
grep -q '###' "$TMP/out" && fail "progress on stdout"

expect 2 edm --load much
grep -q -- '--load' "$TMP/err" || fail "no name of the option"
expect 2 edm --nodes 5000
expect 2 edm --figure 12
expect 2 edm --out /nowhere/at/all
expect 2 edm --frob
expect 2 edm --nodes 8 --out "$TMP"
grep -q -- '--out: there is no picture' "$TMP/err" || fail "a picture of nothing"
expect 2 edm --load
printf '0,0,1,64,0.000001\n1,0,1,sixty,0.000002\n' >"$TMP/trace"
expect 1 edm --trace "$TMP/trace"
grep -q 'trace:2: the size' "$TMP/err" || fail "no line of the trace"
printf '0,0,1,64,0.000001,R\n1,0,1,640,0.000002,W\n' >"$TMP/trace"
expect 0 edm --trace "$TMP/trace"
grep -q 'measured *2$' "$TMP/out" || fail "the trace has two messages"

# Frames of a capture come through; a capture that is cut says where.
expect 0 "$AQUIFER" sim verbs --seed 1 --pcap "$TMP/verbs.pcap"
expect 0 edm --figure frames --pcap "$TMP/verbs.pcap" --json
[[ $(json "$TMP/out" 'sum(r["wrong"] for r in d["points"])') == 0 ]] ||
	fail "frames came out wrong"
[[ $(json "$TMP/out" 'min(r["frames"] for r in d["points"]) > 1000') == True ]] ||
	fail "few frames"
head -c 5000 "$TMP/verbs.pcap" >"$TMP/cut.pcap"
expect 1 edm --figure frames --pcap "$TMP/cut.pcap"
grep -q 'cut.pcap: cut off at offset 5000' "$TMP/err" || fail "no offset"
expect 1 edm --figure frames
grep -q -- '--pcap' "$TMP/err" || fail "no word of --pcap"
expect 1 edm --figure frames --pcap /nowhere/at/all
expect 2 edm --fabric cxl --mirror
grep -q -- '--mirror: only EDM' "$TMP/err" || fail "an option was ignored"

# What a figure does not use is refused, and a seed changes what is random.
expect 2 edm --figure 5 --seed 2
grep -q -- '--seed: figure 5 does not use it' "$TMP/err" || fail "--seed was ignored"
expect 2 edm --figure 8b --discipline pim
expect 2 edm --figure 7 --quick
expect 2 edm --full
grep -q -- 'say --figure' "$TMP/err" || fail "--full was ignored"
expect 0 edm --figure 7 --messages 200
cp "$TMP/out" "$TMP/seed1"
expect 0 edm --figure 7 --messages 200 --seed 2
cmp -s "$TMP/seed1" "$TMP/out" && fail "the seed changes nothing"
expect 0 edm --constants
grep -q 'EDM_LAT_CYCLE_PS *2560' "$TMP/out" || fail "no constants"

# The NIC over each fabric; what a lone READ takes tells them apart.
for fabric in ethernet:1154 edm:308 cxl:300; do
	expect 0 "$AQUIFER" sim verbs --fabric "${fabric%:*}" --seed 2 --json
	[[ $(json "$TMP/out" 'd["fabric"], d["violations"]') == \
		"('${fabric%:*}', 0)" ]] || fail "${fabric%:*}: not run"
	[[ $(json "$TMP/out" 'int(d["read_64_ns"])') == "${fabric#*:}" ]] ||
		fail "${fabric%:*}: another latency"
done
expect 2 "$AQUIFER" sim verbs --fabric tokenring
grep -q tokenring "$TMP/err" || fail "no name of the fabric"
expect 0 "$AQUIFER" sim offload --fabric edm --seeds 2
grep -q ', 0 with violations' "$TMP/out" || fail "offload over EDM"
