#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parses the SVG files of a directory: each must be well-formed, have a mark of
ours, and no coordinate that is no number or far outside."""
import glob
import sys
import xml.etree.ElementTree

files = glob.glob(sys.argv[1] + "/*.svg")
for path in files:
    root = xml.etree.ElementTree.parse(path).getroot()
    height = float(root.get("viewBox").split()[3])
    ours = 0
    for e in root.iter():
        ours += e.get("class") == "ours"
        for key in ("x", "cx", "y", "cy", "width", "height"):
            value = e.get(key, "0").rstrip("%")
            if not -1 <= float(value) <= max(height, 1000):
                sys.exit(f"{path}: {e.tag} has {key} {value}")
    if not ours:
        sys.exit(f"{path}: nothing of ours")
if not files:
    sys.exit("no picture")
