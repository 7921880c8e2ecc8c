#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python module: a table like a dictionary, shared with the command.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
[[ -z ${AQ_PRELOAD:-} ]] || skip "the interpreter is not sanitized"

printf '[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
cat >"$TMP/test.py" <<-'PY'
	import aquifer_kv, errno
	with aquifer_kv.create("py", 1000, extent_bytes=8 << 20) as t:
	    t["ann"] = "42"
	    assert t["ann"] == b"42" and "bob" not in t and len(t) == 1
	    t["large"] = bytes(range(256)) * 4000
	    assert t["large"] == bytes(range(256)) * 4000
	    assert t.incr("n") == 1 and t.incr("n", -5) == -4
	    assert not t.put("ann", "x", nx=True) and not t.put("no", "x", xx=True)
	    assert t.cas("ann", "42", "43") is True and t.cas("ann", "1", "2") is False
	    assert t.cas("nobody", "1", "2") is None
	    for i in range(100):
	        t[f"key{i}"] = str(i)
	    assert dict(t.items())[b"key7"] == b"7" and len(set(t)) == 103
	    del t["ann"]
	    try:
	        t["ann"]
	        assert False
	    except KeyError:
	        pass
	    try:
	        t.incr("large")
	        assert False
	    except aquifer_kv.KvError as e:
	        assert e.errno == errno.EINVAL
	    t.put("short", "lived", expire_at_ms=1)
	    assert t.get("short") is None
	with aquifer_kv.open("py") as t:
	    assert t["key99"] == b"99"
	try:
	    aquifer_kv.open("nothing")
	    assert False
	except aquifer_kv.KvError as e:
	    assert e.errno == errno.ENOENT
	print("fine")
PY
export PYTHONPATH=$AQ_SOURCE/python AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
out=$(timeout 60 python3 "$TMP/test.py") || fail "python"
[[ $out == fine ]] || fail "$out"
expect 0 "$AQUIFER" kv get py key50
[[ $(cat "$TMP/out") == 50 ]] || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" kv check py
