/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are executed: whether the preload library gets into them. */
#ifndef AQ_RUN_EXE_H
#define AQ_RUN_EXE_H

#include <sys/types.h>

#include "base/base.h"

enum exe_kind {
	EXE_DYNAMIC, /* it does, as far as can be seen */
	EXE_STATIC,
	EXE_FOREIGN, /* for another processor, or of 32 bits */
	EXE_SECURE,  /* the loader ignores the library: set-user-ID and alike */
	EXE_UNKNOWN, /* no such file, or not to be read */
};

/* Follows "#!" to the interpreter. For a program of that user and group. */
enum exe_kind exe_look(const char *path, uid_t uid, gid_t gid);
/* The file that execvp would take; false: there is none. */
bool exe_find(const char *name, char *path, size_t bytes);
/* "the program is statically linked"; NULL: nothing is in the way. */
const char *exe_why(enum exe_kind kind);

#endif
