#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elastic files and queues in Python, between processes; and as a file system of
# fsspec, with pandas and dask as Debian has them.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
[[ -z ${AQ_PRELOAD:-} ]] || skip "the interpreter is not sanitized"
python=/usr/bin/python3
"$python" -c 'import fsspec, pandas, dask.dataframe' 2>/dev/null ||
	skip "no python3-fsspec, python3-pandas and python3-dask"

# The package with what its installation adds: the entry point.
mkdir -p "$TMP/site/aquifer-0.dist-info"
ln -s "$AQ_SOURCE/python/aquifer" "$TMP/site/aquifer"
cp "$AQ_SOURCE/python/entry_points.txt" "$TMP/site/aquifer-0.dist-info"
sed 's/@VERSION@/0/' "$AQ_SOURCE/python/METADATA.in" \
	>"$TMP/site/aquifer-0.dist-info/METADATA"
export PYTHONPATH=$TMP/site AQUIFER_LIB=${AQUIFER%/*}/libaquifer.so.1
export PYTHONDONTWRITEBYTECODE=1

mkdir "$TMP/vault"
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
vault = $TMP/vault
[memory m0]
size = 128M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
for tests in Files Queues Stores Jobs FileSystem; do
	timeout -k 5 150 "$python" -X faulthandler \
		"$AQ_SOURCE/tests/e2e/python_elastic.py" "$tests" >"$TMP/out" 2>&1 ||
		fail "$tests $(tail -n 60 "$TMP/out")"
	echo "ok: $tests"
done
# The command sees the same.
"$python" - <<-'PY' || fail "python"
	from aquifer.elastic import Job
	with Job("/shown", on_expiry="keep") as job:
	    with job.open("a", "w") as f:
	        print("from Python", file=f)
	    job.queue("q", raw=True).put(b"item")
PY
expect 0 "$AQUIFER" file cat /shown/a
[[ $(<"$TMP/out") == "from Python" ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" queue get /shown/q
[[ $(<"$TMP/out") == item ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" down
