/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's half of a counter file: making it, registering, removing it. */
#include "counter.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "lock.h"
#include "log.h"
#include "rundir.h"

enum {
	NAME_TRIES = 16, /* files of one process with one name */
	NAME_BYTES = 64, /* of a file name, with the NUL */
};

const struct layout_kind counter_layout = {
	.name = "counter file",
	.magic = "AQCOUNTR",
	.major = 1,
	.minor = 1,
	.header_size = sizeof(struct counter_header),
};

/* What was registered together and is given back together. */
struct group {
	struct group *next;
	void *values;
	size_t size_bytes;
	unsigned first; /* entry */
	unsigned count; /* 0: on the heap, without entries */
	bool is_free;
};

struct counter_file {
	struct lock lock; /* guards what follows it */
	struct group *groups;
	unsigned entry_count;
	size_t values_end; /* where the next group goes */

	struct counter_header *header; /* start of the mapping */
	struct counter_entry *entries;
	size_t size_bytes;
	bool is_mapped; /* else on the heap */
	int fd;		/* holds the flock; -1 on the heap and in a child */
	pid_t owner;
	char path[COUNTER_PATH_MAX];
};

static void make_name(char name[NAME_BYTES], const char *process,
		      unsigned attempt)
{
	char *c;

	snprintf(name, NAME_BYTES, "%d-%.*s", (int)getpid(),
		 COUNTER_PROCESS_MAX - 1, process);
	for (c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			*c = '_';
	if (attempt)
		snprintf(c, NAME_BYTES - (size_t)(c - name), ".%u", attempt);
}

/* Makes a new file of that name that is locked from the moment it is there: it
 * is made under a hidden name, which cleaners leave alone while it is young.
 * Who may enter the directory may read it, and only its owner may write. */
static int open_locked(int dir_fd, const char *name)
{
	char hidden[NAME_BYTES + 1];
	int fd, err = 0;

	snprintf(hidden, sizeof(hidden), ".%s", name);
	fd = openat(dir_fd, hidden,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0644) || flock(fd, LOCK_EX | LOCK_NB) ||
	    linkat(dir_fd, hidden, dir_fd, name, 0))
		err = -errno;
	unlinkat(dir_fd, hidden, 0);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* Opens <rundir>/counters/<pid>-<process>; sets path and fd. */
static int open_file(struct counter_file *f, const char *rundir,
		     const char *process)
{
	int dir_fd = rundir_shared_open(rundir, "counters");
	int fd = -EEXIST;
	char name[NAME_BYTES];
	unsigned i;

	if (dir_fd < 0)
		return dir_fd;
	for (i = 0; i < NAME_TRIES && fd == -EEXIST; i++) {
		make_name(name, process, i);
		fd = open_locked(dir_fd, name);
	}
	close(dir_fd);
	if (fd < 0)
		return error_set(fd, "cannot make %s/counters/%s: %s", rundir,
				 name, strerror(-fd));
	snprintf(f->path, sizeof(f->path), "%s/counters/%s", rundir, name);
	f->fd = fd;
	return 0;
}

/* Through a descriptor of its own: a mapping keeps the open file it was made
 * from, and with it the flock, alive in every child. */
static void *map_apart(const char *path, size_t size_bytes)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	void *map;

	if (fd < 0)
		return MAP_FAILED;
	map = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map;
}

static int map_file(struct counter_file *f, const char *rundir,
		    const char *process)
{
	void *map;
	int err;

	if (strlen(rundir) >= RUNDIR_PATH_MAX)
		return error_set(-ENAMETOOLONG, "%s is too long", rundir);
	(void)counter_dir_clean(rundir); /* what stays is found next time */
	err = open_file(f, rundir, process);
	if (err)
		return err;
	/* Reserves the pages: a full file system is an error now and not a
	 * SIGBUS at the first count. */
	err = -posix_fallocate(f->fd, 0, (off_t)f->size_bytes);
	if (err)
		goto err_unlink;
	map = map_apart(f->path, f->size_bytes);
	if (map == MAP_FAILED) {
		err = -errno;
		goto err_unlink;
	}
	f->header = map;
	f->is_mapped = true;
	return 0;

err_unlink:
	(void)error_set(err, "cannot map %s: %s", f->path, strerror(-err));
	unlink(f->path);
	close(f->fd);
	f->fd = -1;
	return err;
}

static void *heap_alloc(size_t size_bytes)
{
	void *p = aligned_alloc(CACHE_LINE, align_up(size_bytes, CACHE_LINE));

	if (p)
		memset(p, 0, size_bytes);
	return p;
}

static void write_header(struct counter_file *f, const char *process,
			 unsigned entry_capacity)
{
	struct counter_header *h = f->header;

	h->entry_capacity = entry_capacity;
	h->entries_offset = sizeof(*h);
	h->values_offset = (uint32_t)f->values_end;
	h->pid = (uint64_t)getpid();
	h->start_ns = clock_real_ns();
	snprintf(h->process, sizeof(h->process), "%s", process);
	/* Last: a reader that comes earlier finds no magic. */
	layout_header_init(&h->layout, &counter_layout, f->size_bytes,
			   "aquifer");
}

int counter_file_create(const char *rundir, const char *process,
			unsigned entry_capacity, unsigned hist_capacity,
			struct counter_file **out)
{
	struct counter_file *f;

	if (entry_capacity == 0 || entry_capacity > COUNTER_ENTRY_LIMIT ||
	    hist_capacity > COUNTER_HIST_LIMIT)
		return error_set(-EINVAL,
				 "a counter file holds 1 to %d entries and up "
				 "to %d histograms",
				 COUNTER_ENTRY_LIMIT, COUNTER_HIST_LIMIT);
	f = calloc(1, sizeof(*f));
	if (!f)
		return error_set(-ENOMEM, "no memory for counters");
	lock_init(&f->lock);
	f->fd = -1;
	f->owner = getpid();
	f->values_end = sizeof(struct counter_header) +
			entry_capacity * sizeof(struct counter_entry);
	/* A cache line each: enough when every entry is a group by itself. */
	f->size_bytes = f->values_end + (size_t)entry_capacity * CACHE_LINE +
			hist_capacity * sizeof(struct hist);
	if (!rundir || map_file(f, rundir, process)) {
		if (rundir)
			log_info("base", "counters are not published: %s",
				 error_last());
		f->header = heap_alloc(f->size_bytes);
	}
	if (!f->header) {
		free(f);
		return error_set(-ENOMEM, "no memory for counters");
	}
	f->entries = (struct counter_entry *)(f->header + 1);
	write_header(f, process, entry_capacity);
	*out = f;
	return 0;
}

void counter_file_destroy(struct counter_file *f)
{
	struct group *g;

	if (!f)
		return;
	while ((g = f->groups)) {
		f->groups = g->next;
		if (g->count == 0)
			free(g->values);
		free(g);
	}
	if (f->is_mapped && f->owner == getpid())
		unlink(f->path);
	if (f->is_mapped)
		munmap(f->header, f->size_bytes);
	else
		free(f->header);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

void counter_file_after_fork(struct counter_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

const char *counter_file_path(const struct counter_file *f)
{
	return f->is_mapped ? f->path : NULL;
}

/* Room for `count` entries and their values: something given back, or new, or,
 * when the file is full, on the heap. */
static struct group *group_get(struct counter_file *f, unsigned count,
			       size_t size_bytes)
{
	struct group *g;

	for (g = f->groups; g; g = g->next) {
		if (g->is_free && g->count == count &&
		    g->size_bytes == size_bytes) {
			g->is_free = false;
			return g;
		}
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->size_bytes = size_bytes;
	if (count <= f->header->entry_capacity - f->entry_count &&
	    align_up(size_bytes, CACHE_LINE) <= f->size_bytes - f->values_end) {
		g->values = (uint8_t *)f->header + f->values_end;
		g->first = f->entry_count;
		g->count = count;
		f->values_end += align_up(size_bytes, CACHE_LINE);
		f->entry_count += count;
	} else {
		log_info("base", "counter file is full: %u entries are hidden",
			 count);
		g->values = heap_alloc(size_bytes);
		if (!g->values) {
			free(g);
			return NULL;
		}
	}
	g->next = f->groups;
	f->groups = g;
	return g;
}

static const char *unit_of(const char *name)
{
	const char *last = strrchr(name, '_');

	return !last			     ? ""
	       : strcmp(last, "_bytes") == 0 ? "bytes"
	       : strcmp(last, "_ns") == 0    ? "ns"
					     : "";
}

static void put_text(char *dst, size_t size_bytes, const char *text)
{
	memset(dst, 0, size_bytes);
	memcpy(dst, text, strnlen(text, size_bytes - 1));
}

struct entry_text {
	const char *prefix; /* NULL: name is whole */
	const char *name;
	const char *unit;
	const char *help; /* may be NULL */
};

static void entry_write(struct counter_file *f, unsigned index,
			const struct entry_text *t, enum counter_kind kind,
			const void *value)
{
	struct counter_entry *e = &f->entries[index];

	put_text(e->name, sizeof(e->name), "");
	snprintf(e->name, sizeof(e->name), "%s%s%s", t->prefix ? t->prefix : "",
		 t->prefix ? "." : "", t->name);
	put_text(e->unit, sizeof(e->unit), t->unit);
	put_text(e->help, sizeof(e->help), t->help ? t->help : "");
	e->offset =
		(uint32_t)((const uint8_t *)value - (const uint8_t *)f->header);
	/* Readers copy the file with read(2) and check all of it; the order
	 * only keeps half-written entries out of their sight: COUNT-1. */
	atomic_store_explicit(&e->kind, (uint32_t)kind, memory_order_release);
}

static void publish(struct counter_file *f)
{
	/* COUNT-1: no reader counts an entry that is not there yet. */
	atomic_store_explicit(&f->header->entry_count, f->entry_count,
			      memory_order_release);
}

uint64_t *counter_file_group(struct counter_file *f, const char *prefix,
			     const char *const *names, const char *const *help,
			     unsigned count)
{
	uint64_t *values = NULL;
	struct group *g;
	unsigned i;

	ASSERT(count > 0);
	lock_take(&f->lock);
	g = group_get(f, count, count * sizeof(*values));
	if (g) {
		values = g->values;
		for (i = 0; i < g->count; i++) {
			struct entry_text t = {.prefix = prefix,
					       .name = names[i],
					       .unit = unit_of(names[i]),
					       .help = help ? help[i] : NULL};

			entry_write(f, g->first + i, &t, COUNTER_COUNT,
				    &values[i]);
		}
		publish(f);
	}
	lock_drop(&f->lock);
	return values;
}

static void *single(struct counter_file *f, const struct entry_text *t,
		    enum counter_kind kind, size_t size_bytes)
{
	void *value = NULL;
	struct group *g;

	lock_take(&f->lock);
	g = group_get(f, 1, size_bytes);
	if (g) {
		value = g->values;
		if (g->count)
			entry_write(f, g->first, t, kind, value);
		publish(f);
	}
	lock_drop(&f->lock);
	return value;
}

uint64_t *counter_file_gauge(struct counter_file *f, const char *name,
			     const char *unit, const char *help)
{
	struct entry_text t = {.name = name, .unit = unit, .help = help};

	return single(f, &t, COUNTER_GAUGE, sizeof(uint64_t));
}

struct hist *counter_file_hist(struct counter_file *f, const char *name,
			       const char *unit, const char *help)
{
	struct entry_text t = {.name = name, .unit = unit, .help = help};

	return single(f, &t, COUNTER_HIST, sizeof(struct hist));
}

void *counter_file_bundle(struct counter_file *f, const char *prefix,
			  const struct counter_part *parts, unsigned count,
			  size_t size_bytes)
{
	uint8_t *values = NULL;
	struct group *g;

	ASSERT(count > 0);
	lock_take(&f->lock);
	g = group_get(f, count, size_bytes);
	if (g) {
		values = g->values;
		for (unsigned i = 0; i < g->count; i++) {
			const struct counter_part *p = &parts[i];
			struct entry_text t = {.prefix = prefix,
					       .name = p->name,
					       .unit = unit_of(p->name),
					       .help = p->help};

			entry_write(f, g->first + i, &t, p->kind,
				    values + p->offset);
		}
		publish(f);
	}
	lock_drop(&f->lock);
	return values;
}

void counter_file_release(struct counter_file *f, void *values)
{
	struct group **link, *g;
	unsigned i;

	if (!values)
		return;
	lock_take(&f->lock);
	for (link = &f->groups; (g = *link); link = &g->next)
		if (g->values == values && !g->is_free)
			break;
	ASSERT(g != NULL);
	/* COUNT-1: no reader shows values that are cleared as numbers. */
	for (i = 0; i < g->count; i++)
		atomic_store_explicit(&f->entries[g->first + i].kind,
				      COUNTER_NONE, memory_order_release);
	if (g->count) {
		memset(g->values, 0, g->size_bytes);
		g->is_free = true;
	} else {
		*link = g->next;
		free(g->values);
		free(g);
	}
	lock_drop(&f->lock);
}
