/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of `aquifer walk` that need no rack: build, show, check. */
#ifndef AQ_CLI_WALKC_H
#define AQ_CLI_WALKC_H

#include "base/base.h"

/* Options of `build`; 0 and NULL where nothing is given. */
struct cli_walkc_args {
	const char *output;
	const char *only;
	const char *include;
	bool is_embedded;
	uint32_t longest;
	double step_ns, load_ns;
};

/* Its rows of the command's table; `member` is where the struct is in `args`.
 */
#define CLI_WALKC_OPTIONS(args, member)                                      \
	OPT_TEXT(args, member.output, "output", "FILE",                      \
		 "build: where the walk goes, also -o (default: as the "     \
		 "source, with .walk)"),                                     \
		OPT_FLAG(args, member.is_embedded, "embed",                  \
			 "build: write a C header that has the walk in it"), \
		OPT_TEXT(args, member.only, "only", "NAME",                  \
			 "build: that one of several walks in the file"),    \
		OPT_TEXT(args, member.include, "include", "FOLDER",          \
			 "build: where the source's headers are, too"),      \
		OPT_U32(args, member.longest, "longest", "N", 1, 1 << 20,    \
			"build, check: what the longest path may cost "      \
			"(default 1024, as on nodes)"),                      \
		OPT_REAL(args, member.step_ns, "step-ns", "NS", 1e6,         \
			 "build, check: time of an instruction on the node " \
			 "(default 0.4)"),                                   \
		OPT_REAL(args, member.load_ns, "load-ns", "NS", 1e6,         \
			 "build, check: time of loading a node there "       \
			 "(default: 100 and 4 for each 64 bytes after the "  \
			 "first)")

/* 0, -errno with words, or an exit code when they have printed what is wrong.
 */
int cli_walkc_build(const char *file, bool json,
		    const struct cli_walkc_args *a) MUST_CHECK;
int cli_walkc_show(const char *file, bool json) MUST_CHECK;
int cli_walkc_check(const char *file, bool json,
		    const struct cli_walkc_args *a) MUST_CHECK;

/* Turns "-o" into the long option; compilers have taught it to everybody. */
void cli_walkc_words(int argc, char **argv);

/* ---- cli_clang.c ---- */

/*
 * Compiles a source for the machine bpf with the clang that is found; the
 * caller frees the object file. `include` may be NULL. What clang says goes to
 * stderr unless `is_quiet`; -EINVAL with its first error, -ENOENT without any
 * clang, and error_last() says what to install.
 */
int cli_clang(const char *source, const char *include, bool is_quiet,
	      void **object, size_t *object_bytes) MUST_CHECK;
/* All of a file, up to `most` bytes; the caller frees it. */
int cli_walkc_read(const char *path, size_t most, void **bytes,
		   size_t *len) MUST_CHECK;

#endif
