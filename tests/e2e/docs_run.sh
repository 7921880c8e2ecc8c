#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/using.md does what it says: every line of its command blocks ends well,
# and its programs compile and run as they stand, in the order of the page.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need cc redis-cli nbdkit nbdinfo ib_read_lat
[[ -z $AQ_PRELOAD ]] || skip "programs of a reader are not sanitized"
python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)' ||
	skip "userfaultfd is not allowed here"

mkdir "$TMP/tree"
cd "$TMP/tree"
ln -s "$(dirname "$AQUIFER")" build
ln -s "$AQ_SOURCE/include" include
unset LD_LIBRARY_PATH

# One file per block, numbered, with the language as its ending.
python3 - "$AQ_SOURCE/docs/using.md" <<'EOF'
import re, sys
blocks = re.findall(r'^```(\w*)\n(.*?)^```$', open(sys.argv[1]).read(), re.S | re.M)
for i, (language, text) in enumerate(blocks):
    open('%02d.%s' % (i, language or 'sh'), 'w').write(text)
EOF

listeners() {
	awk '$4 == "0A"' /proc/net/tcp /proc/net/tcp6 | wc -l
}

# A job of the page ends with the test. Where a reader sleeps until it listens,
# a busy machine may need longer.
run_commands() {
	local line before=0
	while read -r line; do
		[[ -n ${line%%#*} ]] || continue
		if [[ $line == *"& "* || $line == *"&" ]]; then
			before=$(listeners)
			bash -c "${line%&*}" >"$TMP/job" 2>&1 &
			PIDS+=("$!")
			continue
		fi
		if [[ $line == "sleep 1" ]]; then
			for _ in {1..600}; do
				(($(listeners) == before)) || break
				sleep 0.05
			done
			continue
		fi
		timeout -k 5 120 bash -c "$line" >"$TMP/out" 2>&1 </dev/null ||
			fail "$line: $? $(tail -5 "$TMP/out")"
		echo "ok: $line"
	done <"$1"
}

for block in [0-9]*; do
	case $block in
	*.sh) run_commands "$block" ;;
	*.c)
		cc -Wall -Werror -Iinclude "$block" -Lbuild -laquifer \
			-Wl,-rpath,"$PWD/build" -o program >"$TMP/out" 2>&1 ||
			fail "$block does not compile: $(cat "$TMP/out")"
		timeout -k 5 60 ./program >"$TMP/out" 2>&1 ||
			fail "$block: $? $(cat "$TMP/out")"
		[[ $(cat "$TMP/out") == "read 42" ]] ||
			fail "$block: $(cat "$TMP/out")"
		echo "ok: $block"
		;;
	*) fail "nobody runs $block" ;;
	esac
done
sort big.txt | cmp - sorted.txt || fail "aquifer run sorts otherwise"
