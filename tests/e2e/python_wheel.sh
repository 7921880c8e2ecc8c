#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel of the Python package is made with what is on the machine, and finds
# the library of the prefix that it is installed in.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD ]] || skip "the interpreter is not sanitized"
python=/usr/bin/python3
"$python" -c 'import setuptools, wheel, pip' 2>/dev/null ||
	skip "no python3-pip, python3-setuptools and python3-wheel"
unset LD_LIBRARY_PATH PYTHONPATH AQUIFER_LIB

mkdir "$TMP/source" "$TMP/wheels"
cp -r "$AQ_SOURCE"/python/{pyproject.toml,aquifer} "$TMP/source"
expect 0 "$python" -m pip wheel --no-index --no-build-isolation --no-deps \
	--wheel-dir "$TMP/wheels" "$TMP/source"
wheel=("$TMP"/wheels/aquifer-*-py3-none-any.whl)
[[ -f ${wheel[0]} ]] || fail "no wheel: $(ls "$TMP/wheels")"
"$python" -m zipfile --list "${wheel[0]}" | cut -d' ' -f1 >"$TMP/files"
for file in "$AQ_SOURCE"/python/aquifer/{*.py,py.typed}; do
	grep -qx "aquifer/${file##*/}" "$TMP/files" || fail "no ${file##*/}"
	# What meson installs is listed by hand.
	grep -q "'aquifer/${file##*/}'" "$AQ_SOURCE/python/meson.build" ||
		fail "meson does not install ${file##*/}"
done

# A virtual environment is a prefix.
expect 0 "$python" -m venv --without-pip "$TMP/venv"
site=("$TMP"/venv/lib/python3*/site-packages)
expect 0 "$python" -m pip install --no-index --no-deps --target "${site[0]}" \
	"${wheel[0]}"
ln -s "${AQUIFER%/*}/libaquifer.so.1" "$TMP/venv/lib/libaquifer.so.1"
expect 0 "$TMP/venv/bin/python" -c 'import aquifer
print(aquifer.__file__, aquifer._library._lib._name)'
[[ $(<"$TMP/out") == "${site[0]}/aquifer/__init__.py $TMP/venv/lib/libaquifer.so.1" ]] ||
	fail "$(<"$TMP/out")"
echo "ok: ${wheel[0]##*/}"
