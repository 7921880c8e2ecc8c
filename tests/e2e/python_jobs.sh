#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Models of jobs in Python: the four examples, beside Debian's own programs. With the
# argument "die" also tasks that die at chosen moments and change no result.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
[[ -z ${AQ_PRELOAD:-} ]] || skip "the interpreter is not sanitized"
python=/usr/bin/python3
export PYTHONPATH=$AQ_SOURCE/python AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
export PYTHONDONTWRITEBYTECODE=1 TMP_FOLDER=$TMP/once

mkdir "$TMP/vault" "$TMP_FOLDER"
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
vault = $TMP/vault
[memory m0]
size = 256M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
# Argument "die": jobs whose tasks die, too.
for tests in ${1:+Jobs Flows Tables}; do
	timeout -k 5 250 "$python" -X faulthandler \
		"$AQ_SOURCE/tests/e2e/python_jobs.py" "$tests" >"$TMP/out" 2>&1 ||
		fail "$tests $(tail -n 60 "$TMP/out")"
	echo "ok: $tests"
done

# example NAME ARGUMENT...
example() {
	expect 0 timeout -k 5 250 "$python" "$AQ_SOURCE/examples/$1" "${@:2}"
}
text=$AQ_SOURCE/CONTRIBUTING.md
example word_count.py "$text"
tr '[:upper:]' '[:lower:]' <"$text" | tr -s '[:space:]' '\n' |
	sed -E "s/^[].,;:!?()[\`'\"*#|]+//; s/[].,;:!?()[\`'\"*#|]+\$//" | grep . |
	LC_ALL=C sort | uniq -c | LC_ALL=C sort -k1,1nr -k2,2 | sed -n 1,5p |
	awk '{print $1, $2}' >"$TMP/want"
awk '{print $1, $2}' "$TMP/out" | cmp - "$TMP/want" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns tree /word_count
grep -q "part-1" "$TMP/out" || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" ns rm /word_count --recursive
example sort.py "$text"
LC_ALL=C sort "$text" | cmp - "$TMP/out" || fail "not sorted"
example stream.py "$text"
tr '[:upper:]' '[:lower:]' <"$text" | tr -s '[:space:]' '\n' | grep . |
	LC_ALL=C sort | uniq -c | awk '{print $1, $2}' | LC_ALL=C sort >"$TMP/want"
LC_ALL=C sort "$TMP/out" | cmp - "$TMP/want" || fail "$(<"$TMP/out")"
printf '%s\n' 'a b c' 'b c' 'c a' 'd a b c' >"$TMP/graph"
example pagerank.py "$TMP/graph" 6
"$python" - "$TMP/out" <<'END' || fail "$(<"$TMP/out")"
import sys
graph = {"a": "bc", "b": "c", "c": "a", "d": "abc"}
one = 10**9
rank = dict.fromkeys(graph, one)
for _ in range(6):
    after = dict.fromkeys(graph, one * 15 // 100)
    for page, links in graph.items():
        for link in links:
            after[link] += rank[page] * 85 // 100 // len(links)
    rank = after
found = dict(line.split() for line in open(sys.argv[1]))
sys.exit(found != {page: str(value) for page, value in rank.items()})
END
echo "ok: examples"
expect 0 "$AQUIFER" down
