#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim claims`: runs the commands of one document, writes the page, goes
# on where it was, stops when it is told to.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

claims() {
	"$AQUIFER" sim claims --state "$TMP/state" --out "$TMP/page" "$@"
}
verdicts() {
	json "$TMP/out" "sorted({c['verdict'] for c in d['claims'] if c['document'] == '$1'})"
}

# Nothing but the list: every claim has a command, or says why it has none.
expect 0 claims --list --json
[[ $(json "$TMP/out" 'len(d["claims"]) > 120 and all(c["command"] or c["why"]
	for c in d["claims"])') == True ]] || fail "the list is not whole"
expect 0 claims --list --only jiffy
grep -q 'not tried: ' "$TMP/out" || fail "no reason"
[[ ! -e $TMP/page ]] || fail "a list has written a page"

# The model's own numbers take a second. The page is whole from the beginning.
expect 0 claims --only rnic --json
[[ $(verdicts rnic) == "['input']" ]] || fail "values are missing"
grep -q '^1 of 6: aquifer sim nic-model --figure 1.1' "$TMP/err" ||
	fail "no progress"
grep -q '^| .* | 55 million .* | [0-9.]* Mops | input |' "$TMP/page" ||
	fail "no value in the page"
grep -q '^## odrp' "$TMP/page" || fail "documents are missing"
grep -q 'not run yet' "$TMP/page" || fail "what was not run is not marked"

# What is there is not run again, unless it is asked for or cannot be read.
expect 0 claims --only rnic
[[ ! -s $TMP/err ]] || fail "it ran something again"
echo '{"command": "sim nic-model --figure 1.1", "resu' \
	>"$TMP/state/sim-nic-model---figure-1.1.json"
expect 0 claims --only rnic
grep -q '^1 of 1: ' "$TMP/err" || fail "half a file was believed"
expect 0 claims --only rnic --again
grep -q '^6 of 6: ' "$TMP/err" || fail "--again ran not all"

# Stopped: the command that was running counts as not run, and nothing is left.
# A shell ignores SIGINT for what it starts in the background.
python3 -c 'import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
p = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, text=True)
first = p.stderr.readline()
p.send_signal(signal.SIGINT)
rest = p.communicate()[1]
sys.exit(0 if p.returncode == 1 and "goes on from here" in rest else
	print(p.returncode, first, rest) or 1)' \
	"$AQUIFER" sim claims --only odrp --state "$TMP/stopped" --out "$TMP/page2" ||
	fail "it was not stopped"
compgen -G "$TMP/stopped/*.out" && fail "half an output is left"
grep -q '^## odrp' "$TMP/page2" || fail "no page of a run that was stopped"

expect 2 claims --only nobody
grep -q -- '--only' "$TMP/err" || fail "which option?"
expect 2 claims --quick --full
expect 2 claims --frob
expect 1 claims --only rnic --state /nowhere/at/all
expect 0 claims --help
grep -q 'swordbox ' "$TMP/out" || fail "no documents in --help"
