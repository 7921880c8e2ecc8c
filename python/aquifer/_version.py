# SPDX-License-Identifier: Apache-2.0
"""The release that this package is from, as in meson.build."""
__version__ = "0.2.0"
