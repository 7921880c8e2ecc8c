/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens as text and as files: 32 random bytes, written as 64 lower-case hex
 * digits. Such a file is for its owner alone (mode 0600), and is checked before
 * it is believed. No function here puts a token into an error's words.
 */
#ifndef AQ_SECRET_H
#define AQ_SECRET_H

#include "base.h"

enum {
	SECRET_BYTES = 32,
	SECRET_CHARS = 2 * SECRET_BYTES,
	SECRET_TEXT = SECRET_CHARS + 1, /* with the NUL */
};

bool secret_is_valid(const char *text);
/* A new one, from the kernel's random numbers. */
int secret_make(char text[SECRET_TEXT]) MUST_CHECK;
/* Overwrites a text that is not needed any more. */
void secret_forget(char text[SECRET_TEXT]);

/*
 * The secret in a file. -ENOENT: there is no such file. -EPERM: it is not for
 * its owner alone, or it belongs to somebody who is neither this user, root nor
 * rack.user (root reads files of any owner). -EBADMSG: it holds no secret.
 * error_last() has the words.
 */
int secret_read(const char *path, char text[SECRET_TEXT]) MUST_CHECK;
/* The same for a file in the runtime directory of a rack, see rundir_file_open.
 */
int secret_read_runtime(const char *path, char text[SECRET_TEXT]) MUST_CHECK;
/* Makes the file, with this secret, if there is none; it appears complete or
 * not at all. -EEXIST: there is one. */
int secret_create(const char *path, const char *text) MUST_CHECK;
/* The same, and replaces what is there. */
int secret_replace(const char *path, const char *text) MUST_CHECK;
/* The same for a file that others shall read: where root writes it, it belongs
 * to whom it belonged to or, if it is new, to rack.user or the owner of the
 * directory; to root where others can write to the directory. */
int secret_give(const char *path, const char *text) MUST_CHECK;

#endif
