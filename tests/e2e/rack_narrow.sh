#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A token for reading some regions of two nodes: it reads them, writes nothing,
# sees no others, and ends when it is revoked, with what it had open.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
[[ -z ${AQ_PRELOAD:-} ]] || skip "the interpreter is not sanitized"

export PYTHONPATH=$AQ_SOURCE/python AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
export PYTHONDONTWRITEBYTECODE=1
printf '[memory m0]\nsize = 32M\n[memory m1]\nsize = 32M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
timeout -k 5 100 python3 - <<'PY' || fail "regions"
import aquifer
with aquifer.Rack() as rack:
    for name in "job-in", "job-out", "other":
        with rack.create_region(name, 4096) as r:
            r.write(0, name.encode())
PY
expect 0 "$AQUIFER" token narrow 'job-*' --for 600 --token-file "$TMP/handout" --json
json "$TMP/out" 'd["nodes"] == ["m0", "m1"] and "token" not in d' >/dev/null
[[ $(stat -c %a "$TMP/handout") == 600 ]] || fail "the file's mode"

AQUIFER_TOKEN=$(<"$TMP/handout") timeout -k 5 100 python3 - "$TMP" <<'PY' &
import aquifer, os, sys, time
tmp = sys.argv[1]

def refused(what, *words):
    try:
        what()
    except aquifer.Error as e:
        assert any(w in str(e) for w in words), e
        return
    sys.exit("not refused: %s" % (words,))

with aquifer.Rack() as rack:
    assert sorted(r.name for r in rack.regions()) == ["job-in", "job-out"]
    with rack.open_region("job-in", read_only=True) as r:
        assert r.read(0, 6) == b"job-in"
        refused(lambda: r.write(0, b"x"), "read")
        refused(lambda: rack.open_region("other", read_only=True).read(0, 1), "other")
        refused(lambda: rack.open_region("job-out").write(0, b"x"), "only read")
        refused(lambda: rack.delete_region("job-out"), "for nothing else")
        refused(lambda: rack.create_region("job-new", 4096), "for nothing else")
        open(tmp + "/reads", "w").close()
        end = time.time() + 60
        while time.time() < end:
            try:
                r.read(0, 6)
            except aquifer.Error:
                open(tmp + "/ended", "w").close()
                break
            time.sleep(0.05)
PY
reader=$!
PIDS+=("$reader")
for _ in {1..1200}; do
	[[ -e $TMP/reads ]] && break
	kill -0 "$reader" 2>/dev/null || break
	sleep 0.05
done
[[ -e $TMP/reads ]] || fail "it does not read"
expect 0 "$AQUIFER" token revoke --token-file "$TMP/handout"
wait "$reader" || fail "what it may not do is done"
[[ -e $TMP/ended ]] || fail "it reads on"
AQUIFER_TOKEN=$(<"$TMP/handout") expect 1 "$AQUIFER" region list
expect 1 "$AQUIFER" token revoke --token-file "$TMP/handout"
# The tenant itself has lost nothing.
expect 0 "$AQUIFER" region delete job-out
expect 0 "$AQUIFER" down
echo "ok: narrow tokens"
