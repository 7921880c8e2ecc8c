#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the package is installed, for meson and make.

    where.py folder PREFIX      its folder, below the prefix
    where.py tell BUILD         who finds what was installed, or what to set
    where.py forget BUILD       removes what interpreters compiled beside it
"""
import json
import os
import shutil
import subprocess
import sys


def interpreters():
    """The user's, and the system's."""
    found = [shutil.which("python3"), "/usr/bin/python3"]
    return [p for p in dict.fromkeys(found) if p and os.path.exists(p)]


def folders_of(interpreter):
    """Where it looks for packages, without what the environment adds."""
    code = "import sys; print('\\n'.join(sys.path))"
    out = subprocess.run([interpreter, "-I", "-c", code], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return [p for p in out.splitlines() if p.endswith("-packages")]


def folder(prefix):
    """One that an interpreter looks into, if there is any in the prefix."""
    for interpreter in interpreters():
        for found in folders_of(interpreter):
            below = os.path.relpath(found, prefix)
            if below.startswith("lib"):
                return below
    version = "python%d.%d" % sys.version_info[:2]
    return os.path.join("lib", version, "site-packages")


def installed(build):
    """The package's folder in the prefix of a build."""
    with open(os.path.join(build, "meson-info/intro-installed.json")) as f:
        for path in json.load(f).values():
            if path.endswith("/aquifer/__init__.py"):
                return os.path.dirname(path)
    sys.exit(f"{build} installs no Python package")


def tell(build):
    where = os.path.dirname(installed(build))
    for interpreter in interpreters():
        if where in folders_of(interpreter):
            print(f"{interpreter} finds the package aquifer")
            return
    print(f"To import aquifer in Python: export PYTHONPATH={where}")


def forget(build):
    compiled = os.path.join(installed(build), "__pycache__")
    shutil.rmtree(compiled, ignore_errors=True)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("folder", "tell", "forget"):
        sys.exit(__doc__)
    if sys.argv[1] == "folder":
        print(folder(sys.argv[2]))
    elif sys.argv[1] == "tell":
        tell(sys.argv[2])
    else:
        forget(sys.argv[2])


main()
