/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting what /proc/PID/smaps says. */
#include "near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
	FAR_PART = 8,
};

#define WORTH_BYTES (16ull << 20)
#define HUGE_BYTES  (16ull << 30) /* RESERVE_MAX of the library */

static enum near_kind kind_of(uint64_t bytes, const char *perms,
			      unsigned long long inode, const char *name)
{
	if (strncmp(name, "[stack", 6) == 0)
		return NEAR_STACK;
	if (strncmp(name, "[heap]", 6) == 0)
		return NEAR_BRK;
	if (inode)
		return NEAR_FILE;
	if (strchr(perms, 'x'))
		return NEAR_EXEC;
	return bytes > HUGE_BYTES ? NEAR_HUGE : NEAR_OTHER;
}

/* "VmFlags: rd wr mr": userfaultfd's are um, uw and ui. */
static bool is_watched(const char *flags)
{
	return strstr(flags, " um") || strstr(flags, " uw") ||
	       strstr(flags, " ui");
}

void near_read_line(struct near_count *c, const char *line)
{
	unsigned long long from, to, inode = 0, kib;
	char perms[8], name[16] = "";

	if (sscanf(line, "Anonymous: %llu kB", &kib) == 1) {
		c->pending = (uint64_t)kib << 10;
	} else if (strncmp(line, "VmFlags:", 8) == 0) {
		/* The last line of a mapping. */
		if (is_watched(line))
			c->has_far = true;
		else
			c->bytes[c->kind] += c->pending;
		c->pending = 0;
	} else if (sscanf(line, "%llx-%llx %7s %*x %*s %llu %15s", &from, &to,
			  perms, &inode, name) >= 4) {
		c->kind = kind_of(to - from, perms, inode, name);
		c->pending = 0;
	}
}

void near_clean(char *name)
{
	for (; *name; name++)
		if (!isprint((unsigned char)*name) || *name == '"' ||
		    *name == '\\')
			*name = '?';
}

uint64_t near_total(const struct near_count *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < NEAR_KINDS; i++)
		sum += c->bytes[i];
	return sum;
}

enum near_kind near_main_kind(const struct near_count *c)
{
	unsigned most = 0;

	for (unsigned i = 1; i < NEAR_KINDS; i++)
		if (c->bytes[i] > c->bytes[most])
			most = i;
	return (enum near_kind)most;
}

bool near_matters(uint64_t near_bytes, uint64_t far_bytes)
{
	return near_bytes > WORTH_BYTES && near_bytes > far_bytes / FAR_PART;
}

const char *near_why(enum near_kind kind)
{
	static const char *const why[NEAR_KINDS] = {
		[NEAR_UNATTACHED] = "the program did not attach to the pager",
		[NEAR_STACK] = "the memory is a stack",
		[NEAR_BRK] = "the program asks the kernel for it with brk",
		[NEAR_FILE] = "the memory is data of files that were changed",
		[NEAR_EXEC] = "the memory may be executed",
		[NEAR_HUGE] = "the memory lies in mappings of more than 16G",
		[NEAR_OTHER] = "the memory is mapped at addresses that the "
			       "program chose, by system calls of its own, or "
			       "in mappings below --min-size",
	};

	return why[kind];
}
