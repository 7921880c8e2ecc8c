/* SPDX-License-Identifier: Apache-2.0 */
/* The readers' half of counter files: a checked copy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counter.h"
#include "error.h"

/* The file is read(2) and not mapped: its owner could cut it meanwhile, which
 * in a mapping would be a SIGBUS of the reader. */
struct counter_snapshot {
	uint8_t *bytes;
	size_t size_bytes;
	uint32_t entry_count;
	uint32_t entries_offset;
	uint32_t values_offset;
	uint64_t pid;
	uint64_t start_ns;
	uid_t uid; /* of the file */
	char process[COUNTER_PROCESS_MAX];
};

/* Text from the file: ended by NUL, without what could upset a terminal. */
static void copy_text(char *dst, const char *src, size_t size_bytes)
{
	size_t i;

	for (i = 0; i < size_bytes - 1 && src[i]; i++)
		dst[i] = src[i] >= 0x20 && src[i] < 0x7f ? src[i] : '?';
	memset(dst + i, 0, size_bytes - i);
}

static int read_all(int fd, struct counter_snapshot *s)
{
	struct stat st;
	size_t n = 0;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > COUNTER_FILE_MAX)
		return -EBADMSG;
	s->uid = st.st_uid;
	s->bytes = malloc((size_t)st.st_size + 1);
	if (!s->bytes)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = pread(fd, s->bytes + n, (size_t)st.st_size - n,
				    (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	s->size_bytes = n;
	return 0;
}

/* ---- whose it is --------------------------------------------------------- */

/* The number that the file's name begins with, or the one that is inside: a
 * file without such a name is no process's. */
static uint64_t named_pid(const char *path, uint64_t inside)
{
	const char *name = strrchr(path, '/');
	char *end;
	uint64_t pid;

	name = name ? name + 1 : path;
	if (*name < '0' || *name > '9')
		return inside;
	pid = strtoull(name, &end, 10);
	return *end == '-' ? pid : inside;
}

/* Whether the process runs as that user; true if nobody can tell. */
static bool runs_as(uint64_t pid, uid_t uid)
{
	char path[40], line[128];
	bool is_so = true, found = false;
	unsigned long id[4];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%llu/status",
		 (unsigned long long)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Uid: %lu %lu %lu %lu", &id[0], &id[1],
			       &id[2], &id[3]) == 4;
	if (found)
		is_so = id[0] == uid || id[1] == uid || id[2] == uid ||
			id[3] == uid;
	if (f)
		(void)fclose(f); /* only read */
	return is_so;
}

/* A file speaks of its own process. Whoever may write to the directory could
 * say something about others'; root and the reader need no such way. */
static int check_owner(const struct counter_snapshot *s, const char *path)
{
	if (named_pid(path, s->pid) != s->pid)
		return error_set(-EBADMSG,
				 "counter file: says that it is of process "
				 "%llu",
				 (unsigned long long)s->pid);
	if (s->uid && s->uid != geteuid() && !runs_as(s->pid, s->uid))
		return error_set(-EBADMSG,
				 "counter file: of user %u, process %llu is "
				 "not",
				 (unsigned)s->uid, (unsigned long long)s->pid);
	return 0;
}

static int check(struct counter_snapshot *s)
{
	struct counter_header h;
	struct layout_info info;
	uint64_t entries_end;
	int err;

	ASSERT(s->bytes);
	err = layout_header_check(s->bytes, s->size_bytes, &counter_layout,
				  &info);
	if (err)
		return err;
	if (info.header_size < sizeof(h))
		return error_set(-EBADMSG, "counter file: header too short");
	memcpy(&h, s->bytes, sizeof(h));
	s->size_bytes = info.total_size;
	s->entry_count =
		atomic_load_explicit(&h.entry_count, memory_order_relaxed);
	s->entries_offset = h.entries_offset;
	s->values_offset = h.values_offset;
	s->pid = h.pid;
	s->start_ns = h.start_ns;
	copy_text(s->process, h.process, sizeof(h.process));
	entries_end = (uint64_t)h.entries_offset +
		      (uint64_t)h.entry_capacity * sizeof(struct counter_entry);
	if (h.entries_offset < info.header_size ||
	    s->entry_count > h.entry_capacity ||
	    h.values_offset < entries_end || h.values_offset > s->size_bytes)
		return error_set(-EBADMSG,
				 "counter file: %u of %u entries at %u and "
				 "values at %u do not fit in %zu bytes",
				 s->entry_count, h.entry_capacity,
				 h.entries_offset, h.values_offset,
				 s->size_bytes);
	return 0;
}

int counter_snapshot_read(const char *path, struct counter_snapshot **out)
{
	struct counter_snapshot *s;
	int fd, err;

	/* O_NONBLOCK: a pipe of that name must not hold the reader up. */
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		return error_set(err, "%s: %s", path, strerror(-err));
	}
	s = calloc(1, sizeof(*s));
	err = s ? read_all(fd, s) : -ENOMEM;
	close(fd);
	if (err) {
		(void)error_set(err, "%s: %s", path, /* returned below */
				err == -EBADMSG
					? "not a regular file of proper size"
					: strerror(-err));
		goto err_free;
	}
	err = check(s);
	if (!err)
		err = check_owner(s, path);
	if (err) {
		err = error_prefix(err, "%s: ", path);
		goto err_free;
	}
	*out = s;
	return 0;

err_free:
	counter_snapshot_free(s);
	return err;
}

void counter_snapshot_free(struct counter_snapshot *s)
{
	if (!s)
		return;
	free(s->bytes);
	free(s);
}

uint64_t counter_snapshot_pid(const struct counter_snapshot *s)
{
	return s->pid;
}

uint64_t counter_snapshot_start_ns(const struct counter_snapshot *s)
{
	return s->start_ns;
}

const char *counter_snapshot_process(const struct counter_snapshot *s)
{
	return s->process;
}

static size_t value_bytes(uint32_t kind)
{
	return kind == COUNTER_HIST   ? sizeof(struct hist)
	       : kind == COUNTER_TEXT ? COUNTER_TEXT_MAX
				      : sizeof(uint64_t);
}

static bool view_entry(const struct counter_snapshot *s, unsigned index,
		       struct counter_view *view)
{
	struct counter_entry e;
	uint32_t kind;
	size_t need;

	memcpy(&e, s->bytes + s->entries_offset + (size_t)index * sizeof(e),
	       sizeof(e));
	kind = atomic_load_explicit(&e.kind, memory_order_relaxed);
	if (kind == COUNTER_NONE || kind >= COUNTER_KIND_COUNT)
		return false;
	need = value_bytes(kind);
	if (e.offset < s->values_offset || e.offset % sizeof(uint64_t) ||
	    e.offset > s->size_bytes || need > s->size_bytes - e.offset)
		return false;
	*view = (struct counter_view){.kind = (enum counter_kind)kind};
	copy_text(view->name, e.name, sizeof(e.name));
	copy_text(view->unit, e.unit, sizeof(e.unit));
	copy_text(view->help, e.help, sizeof(e.help));
	if (kind == COUNTER_HIST)
		view->hist = (const struct hist *)(s->bytes + e.offset);
	else if (kind == COUNTER_TEXT)
		copy_text(view->text, (const char *)s->bytes + e.offset,
			  sizeof(view->text));
	else
		memcpy(&view->value, s->bytes + e.offset, sizeof(view->value));
	return true;
}

bool counter_snapshot_next(const struct counter_snapshot *s, unsigned *cursor,
			   struct counter_view *view)
{
	while (*cursor < s->entry_count)
		if (view_entry(s, (*cursor)++, view))
			return true;
	return false;
}
