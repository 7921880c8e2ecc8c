/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of executable a file is. */
#include "exe.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	SCRIPTS_MAX = 4, /* one after the other, as in the kernel */
	HEAD_BYTES = 256,
};

const char *exe_why(enum exe_kind kind)
{
	switch (kind) {
	case EXE_STATIC:
		return "the program is statically linked";
	case EXE_FOREIGN:
		return "the program is for another processor";
	case EXE_SECURE:
		return "the program has rights of its file (set-user-ID, "
		       "set-group-ID or capabilities)";
	case EXE_DYNAMIC:
	case EXE_UNKNOWN:
		break;
	}
	return NULL;
}

static bool is_secure(int fd, uid_t uid, gid_t gid)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != uid) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		st.st_gid != gid) ||
	       (uid != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

static enum exe_kind look_elf(int fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;

	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != EM_X86_64 ||
	    h->e_phentsize != sizeof(p))
		return EXE_FOREIGN;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		off_t at = (off_t)(h->e_phoff + i * sizeof(p));

		if (pread(fd, &p, sizeof(p), at) != sizeof(p))
			return EXE_UNKNOWN;
		if (p.p_type == PT_INTERP)
			return EXE_DYNAMIC;
	}
	return EXE_STATIC;
}

/* "#! /bin/sh -e": the name alone. */
static bool read_script(char *head, char *path, size_t bytes)
{
	char *at = head + 2;
	size_t n;

	if (memcmp(head, "#!", 2) != 0)
		return false;
	at += strspn(at, " \t");
	n = strcspn(at, " \t\n");
	if (n == 0 || n >= bytes)
		return false;
	memcpy(path, at, n);
	path[n] = '\0';
	return true;
}

/* EXE_UNKNOWN with the interpreter's name in `next`: that one counts. */
static enum exe_kind look_one(const char *path, uid_t uid, gid_t gid,
			      char *next, size_t bytes)
{
	union {
		Elf64_Ehdr elf;
		char text[HEAD_BYTES + 1];
	} head = {.text = {0}};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum exe_kind kind = EXE_UNKNOWN;

	next[0] = '\0';
	if (fd < 0)
		return EXE_UNKNOWN;
	if (pread(fd, head.text, HEAD_BYTES, 0) >= (ssize_t)sizeof(head.elf) &&
	    memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0)
		kind = is_secure(fd, uid, gid) ? EXE_SECURE
					       : look_elf(fd, &head.elf);
	else
		(void)read_script(head.text, next, bytes);
	(void)close(fd);
	return kind;
}

enum exe_kind exe_look(const char *path, uid_t uid, gid_t gid)
{
	char at[HEAD_BYTES], next[HEAD_BYTES];
	enum exe_kind kind = look_one(path, uid, gid, next, sizeof(next));

	for (unsigned i = 0; i < SCRIPTS_MAX && next[0]; i++) {
		memcpy(at, next, sizeof(at));
		kind = look_one(at, uid, gid, next, sizeof(next));
	}
	return kind;
}

bool exe_find(const char *name, char *path, size_t bytes)
{
	const char *at = getenv("PATH");

	if (strchr(name, '/')) {
		(void)snprintf(path, bytes, "%s", name);
		return access(path, X_OK) == 0;
	}
	if (!at)
		at = "/bin:/usr/bin";
	for (;;) {
		int n = (int)strcspn(at, ":");

		/* An empty part is the current directory. */
		(void)snprintf(path, bytes, "%.*s%s%s", n, at, n ? "/" : "./",
			       name);
		if (access(path, X_OK) == 0)
			return true;
		if (!at[n])
			return false;
		at += n + 1;
	}
}
