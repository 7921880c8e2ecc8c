#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim NAME --figure F --out DIR` for every system that has figures:
# small runs, one shape of JSON, a well-formed picture; one rule for exit codes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

# System, figure, and what makes it small. The first one makes the folder.
figure() {
	expect 0 "$AQUIFER" sim "$1" --figure "$2" --json --out "$TMP/svg" "${@:3}"
	[[ $(json "$TMP/out" 'd["sim"], d["figure"]') == "('$1', '$2')" ]] ||
		fail "$1 $2: another shape"
	[[ $(json "$TMP/out" 'len(d["points"]) > 0 and len(d["claims"]) >= 0 and
		len(d["source"]) > 0') == True ]] || fail "$1 $2: no points"
	[[ -s $TMP/svg/$1-$2.svg ]] || fail "$1 $2: no picture"
}
figure offload 13 --quick
cp "$TMP/out" "$TMP/ethernet"
# Over another fabric the same figure has other times, and no switch to program.
figure offload 13 --quick --fabric edm
[[ $(json "$TMP/out" 'd["fabric"]') == edm ]] || fail "which fabric?"
cmp -s <(json "$TMP/out" 'd["points"]') <(json "$TMP/ethernet" 'd["points"]') &&
	fail "--fabric was ignored"
figure switch 2.9 --quick --threads 8 --fabric cxl
[[ $(json "$TMP/out" 'sorted({p["series"].split("/")[0] for p in d["points"]})') == "['cas']" ]] ||
	fail "a program in a switch that reads no frames"
# The indexes' figures have no switch, so all of their points run over each fabric.
figure index ycsb-a --quick
cp "$TMP/out" "$TMP/index"
for fabric in edm cxl; do
	figure index ycsb-a --quick --fabric "$fabric"
	[[ $(json "$TMP/out" 'd["fabric"]') == "$fabric" ]] || fail "which fabric?"
	cmp <(json "$TMP/out" '[(p["series"], p["x"]) for p in d["points"]]') \
		<(json "$TMP/index" '[(p["series"], p["x"]) for p in d["points"]]') ||
		fail "index: other points over $fabric"
	# Half of the READs wait for NICs and the fabric alone.
	python3 -c 'import json, sys
a, b = ([p for p in json.load(open(f))["points"] if p["clients"] == 24]
	for f in sys.argv[1:])
sys.exit(len(a) != 3 or not all(
	0 < y["read_p50_us"] < x["read_p50_us"] and not y["failed"]
	for x, y in zip(a, b)))' "$TMP/index" "$TMP/out" ||
		fail "index: no faster over $fabric"
done
expect 2 "$AQUIFER" sim index --figure ycsb-a --fabric tokenring
expect 2 "$AQUIFER" sim index --figure ycsb-a --steer on
# A seed changes what is random.
figure offload 13 --quick --seed 2
cmp -s <(json "$TMP/out" 'd["points"]') <(json "$TMP/ethernet" 'd["points"]') &&
	fail "--seed was ignored"
# What a figure does not use is refused.
for words in "offload 13 --nic-mpps 5" "paging 12 --quick" "nic-model 1.2 --quick" \
	"edm 7 --chunk 64"; do
	read -ra word <<<"$words"
	expect 2 "$AQUIFER" sim "${word[0]}" --figure "${word[@]:1}"
	grep -q -- "${word[2]}: figure ${word[1]} does not use it" "$TMP/err" ||
		fail "$words: no reason"
done
expect 2 "$AQUIFER" sim offload --figure 13 --fabric tokenring
expect 2 "$AQUIFER" sim nic-model --figure 1.2 --fabric edm
expect 2 "$AQUIFER" sim offload --figure table5 --fabric edm
figure offload 1 --quick
figure offload 2 --quick
figure offload 10 --quick
figure offload 14 --quick
figure offload table5 --quick
figure offload options --quick
figure kv 3.18 --quick
figure switch 2.9 --quick --threads 8
figure paging 12
figure walk ratio --quick
figure walk breakdown --quick
figure tier ladder
figure tier keydb --quick
figure edm 7 --quiet
figure nic-model 1.2
python3 "$(dirname "$0")/../unit/check_svg.py" "$TMP/svg" || fail "no SVG"

for system in offload kv index switch paging walk tier edm nic-model; do
	expect 2 "$AQUIFER" sim "$system" --figure none-such
	grep -q -- '--figure none-such' "$TMP/err" || fail "$system: which option?"
	expect 2 "$AQUIFER" sim "$system" --figure all --out /nowhere/at/all
	expect 2 "$AQUIFER" sim "$system" --figure all --frob
	expect 0 "$AQUIFER" sim "$system" --figure all --help
	grep -q -- '--out DIR' "$TMP/out" || fail "$system: no help"
done
expect 0 "$AQUIFER" sim walk --costs
grep -q '^load_ps .* PUBLISHED' "$TMP/out" || fail "no constants of walks"
expect 2 "$AQUIFER" sim walk --figure ratio --fabric edm
# None of its points were asked for.
expect 1 "$AQUIFER" sim switch --figure 2.9 --threads 7
