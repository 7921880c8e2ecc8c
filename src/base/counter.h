/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter files: each process maps <rundir>/counters/<pid>-<name> and counts in
 * it with plain stores; readers read the file and do not disturb the process.
 *
 * The owner holds an flock on its file for as long as it lives. A file whose
 * lock is free has no owner any more: the next process that starts or lists
 * counters removes it, so a killed process leaves nothing behind for long. A
 * forked child shares the lock and must give its share up:
 * counter_file_after_fork().
 *
 * The file, in host byte order after the layout header, never leaves a machine:
 *
 *	struct counter_header		128 bytes
 *	struct counter_entry[]		entry_capacity of them
 *	values				from values_offset to the end; an entry
 *					says where its own are
 */
#ifndef AQ_COUNTER_H
#define AQ_COUNTER_H

#include <stdatomic.h>

#include "base.h"
#include "hist.h"
#include "layout.h"

enum {
	COUNTER_NAME_MAX = 48, /* these limits include the NUL */
	COUNTER_UNIT_MAX = 8,
	COUNTER_HELP_MAX = 64,
	COUNTER_PROCESS_MAX = 32,
	COUNTER_TEXT_MAX = 64, /* also what a text takes in the file */
	COUNTER_ENTRY_LIMIT = 4096,
	COUNTER_HIST_LIMIT = 64,
	COUNTER_FILE_MAX = 4 << 20, /* bytes a reader is ready to read */
	COUNTER_PATH_MAX = 320,
};

enum counter_kind {
	COUNTER_NONE, /* given back, or not there yet */
	COUNTER_COUNT,
	COUNTER_GAUGE,
	COUNTER_HIST,
	COUNTER_TEXT, /* since minor version 1 */
	COUNTER_KIND_COUNT,
};

struct counter_header {
	struct layout_header layout;
	uint32_t entry_capacity;
	_Atomic uint32_t entry_count; /* stored after its entries */
	uint32_t entries_offset;
	uint32_t values_offset;
	uint64_t pid;
	uint64_t start_ns; /* since 1970 */
	char process[COUNTER_PROCESS_MAX];
};

struct counter_entry {
	char name[COUNTER_NAME_MAX];
	char unit[COUNTER_UNIT_MAX];
	_Atomic uint32_t kind; /* enum counter_kind; stored last */
	uint32_t offset;       /* of its value in the file */
	char help[COUNTER_HELP_MAX];
};

STATIC_ASSERT(sizeof(struct counter_header) == 128, "counter header");
STATIC_ASSERT(offsetof(struct counter_header, pid) == 80, "counter header pid");
STATIC_ASSERT(sizeof(struct counter_entry) == 128, "counter entry");
STATIC_ASSERT(offsetof(struct counter_entry, kind) == 56, "counter kind");

extern const struct layout_kind counter_layout;

/* ---- the owner ---------------------------------------------------------- */

/* Any thread may use it; the user of a group decides what guards its values. */
struct counter_file;

/*
 * A file with room for that many entries and histograms. Without a directory
 * (rundir NULL, or it cannot be written: the log says so at level info) the
 * counters live on the heap and no other process sees them. -ENOMEM, -EINVAL
 * for a size above the limits.
 */
int counter_file_create(const char *rundir, const char *process,
			unsigned entry_capacity, unsigned hist_capacity,
			struct counter_file **out) MUST_CHECK;
/* Also removes the file, unless the caller is a child of the process that made
 * it. All groups end with the file. */
void counter_file_destroy(struct counter_file *file);
/* Call it in a child that keeps the handle without destroying it: from here on
 * the file lives as long as the parent. The values stay mapped. */
void counter_file_after_fork(struct counter_file *file);
/* NULL when the counters live on the heap. */
const char *counter_file_path(const struct counter_file *file);

/*
 * `count` counters named prefix.name, contiguous, zero, on a cache line of
 * their own. A name that ends in _bytes or _ns gets that unit. `help` may be
 * NULL. When the file is full the group lives on the heap, unseen; NULL only
 * without memory.
 */
uint64_t *counter_file_group(struct counter_file *file, const char *prefix,
			     const char *const *names, const char *const *help,
			     unsigned count) MUST_CHECK;
/* One value that goes up and down; otherwise the same. */
uint64_t *counter_file_gauge(struct counter_file *file, const char *name,
			     const char *unit, const char *help) MUST_CHECK;
struct hist *counter_file_hist(struct counter_file *file, const char *name,
			       const char *unit, const char *help) MUST_CHECK;
/* One value of a bundle. */
struct counter_part {
	const char *name;
	const char *help;
	enum counter_kind kind;
	uint32_t offset; /* in the bundle, a multiple of 8 */
};
/*
 * Values of several kinds in a struct of the caller's, of size_bytes, zeroed:
 * all of them are shown, one after the other and as prefix.name, or none. A
 * text is a char[COUNTER_TEXT_MAX], and its last byte stays 0.
 */
void *counter_file_bundle(struct counter_file *file, const char *prefix,
			  const struct counter_part *parts, unsigned count,
			  size_t size_bytes) MUST_CHECK;
/* Gives a group, gauge, histogram or bundle back, by the pointer that was
 * returned. Its room is used again for one of the same size. */
void counter_file_release(struct counter_file *file, void *values);

/* ---- readers ------------------------------------------------------------ */

/* A checked copy of a counter file. The file is not trusted: it may be cut,
 * made up, or change while it is read. */
struct counter_snapshot;

struct counter_view {
	char name[COUNTER_NAME_MAX];
	char unit[COUNTER_UNIT_MAX];
	char help[COUNTER_HELP_MAX];
	enum counter_kind kind;
	uint64_t value;		     /* COUNT, GAUGE */
	const struct hist *hist;     /* HIST; lives as long as the snapshot */
	char text[COUNTER_TEXT_MAX]; /* TEXT; printable ASCII */
};

/* -EBADMSG or -EPROTONOSUPPORT for a malformed file, -errno of open and read;
 * error_last() has the words. */
int counter_snapshot_read(const char *path,
			  struct counter_snapshot **out) MUST_CHECK;
void counter_snapshot_free(struct counter_snapshot *s);
uint64_t counter_snapshot_pid(const struct counter_snapshot *s);
/* When its process made it; tells it from one of the same name before. */
uint64_t counter_snapshot_start_ns(const struct counter_snapshot *s);
/* What the process calls itself. */
const char *counter_snapshot_process(const struct counter_snapshot *s);
/* The next entry; *cursor starts at 0. Malformed entries are left out. */
bool counter_snapshot_next(const struct counter_snapshot *s, unsigned *cursor,
			   struct counter_view *view);

typedef int (*counter_dir_fn)(const char *path, void *ctx);

/* Removes the files of processes that are gone; returns how many, or -errno. */
int counter_dir_clean(const char *rundir);
/* Cleans, then calls fn for each file until fn returns other than 0, which is
 * returned. A directory that does not exist has no files. */
int counter_dir_each(const char *rundir, counter_dir_fn fn,
		     void *ctx) MUST_CHECK;

#endif
