#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rdma-core's own tests, as the package python3-pyverbs ships them: of the
# modules named by the arguments, every test that is not skipped passes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need_nic
# Debian's Python: pyverbs is a module of that one.
python=/usr/bin/python3
$python -c 'import pyverbs' 2>/dev/null ||
	skip "python3-pyverbs is not installed"
tests=/usr/share/doc/rdma-core/tests
if [[ ! -d $tests ]]; then
	# Images without documentation lack it; the package itself has it.
	(cd "$TMP" && outside apt-get -qq download python3-pyverbs) ||
		skip "no $tests, and the package cannot be downloaded"
	dpkg-deb -x "$TMP"/python3-pyverbs_*.deb "$TMP/package"
	tests=$TMP/package/$tests
fi
cp -r "$tests" "$TMP/tests"
gunzip -qf "$TMP"/tests/*.gz
modules=()
for module; do
	modules+=("tests.$module")
done
cd "$TMP" || fail "no folder"
# attempt: sets status.
attempt() {
	status=0
	soft timeout 140 "$python" tests/run_tests.py --dev aq0 --gid 1 \
		--port 1 -v "${modules[@]}" >"$TMP/out" 2>&1 || status=$?
}
attempt
# ASan of gcc 12 does not survive each fork of a process with threads.
if [[ $status == 124 && -n ${AQ_PRELOAD:-} ]]; then
	attempt
fi
passed=$(grep -c ' \.\.\. ok$' "$TMP/out" || true)
skipped=$(grep -c ' \.\.\. skipped ' "$TMP/out" || true)
failed=$(grep -Ec '^(FAIL|ERROR): ' "$TMP/out" || true)
grep ' \.\.\. skipped ' "$TMP/out" || true
if ((status != 0 || passed == 0)); then
	grep -v ' \.\.\. skipped ' "$TMP/out"
	fail "$passed ok, $skipped skipped, $failed failed, exit code $status"
fi
echo "$passed ok, $skipped skipped, $failed failed"
