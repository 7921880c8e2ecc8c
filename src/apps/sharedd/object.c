/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of POSIX and System V shared memory: segments that programs find by
 * name, give a length and unlink. The lead has them; here is what this machine
 * has open, which is what keeps one alive that has no name any more.
 *
 * A program's descriptor of an object is a placeholder: an empty file that it
 * has with O_PATH, so that the kernel refuses to read, write and map it. That
 * the last copy of it, in whatever process, is closed, inotify tells: the file
 * has no name, so it goes with its last user.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "shd_priv.h"

int shd_object_start(struct shd *s)
{
	s->placeholders = calloc(SHD_PLACEHOLDERS, sizeof(*s->placeholders));
	if (!s->placeholders)
		return error_set(-ENOMEM, "no memory");
	s->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s->inotify < 0)
		return error_set(-errno, "inotify: %s", strerror(errno));
	s->on_objects = (struct shd_watch){.kind = SHD_WATCH_OBJECTS};
	return shd_watch_add(s, s->inotify, &s->on_objects);
}

void shd_object_stop(struct shd *s)
{
	struct list *next;

	for (struct list *l = s->objects.next; l != &s->objects; l = next) {
		next = l->next;
		free(container_of(l, struct shd_object, node));
	}
	if (s->inotify >= 0)
		(void)close(s->inotify);
	free(s->placeholders);
}

/* ---- what is open -------------------------------------------------------- */

static struct shd_object *find(struct shd *s, uint64_t id)
{
	for (struct list *l = s->objects.next; l != &s->objects; l = l->next) {
		struct shd_object *o = container_of(l, struct shd_object, node);

		if (o->id == id)
			return o;
	}
	return NULL;
}

static struct shd_object *get(struct shd *s, uint64_t id)
{
	struct shd_object *o = find(s, id);

	if (o) {
		o->users++;
		return o;
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->id = id;
	o->users = 1;
	list_append(&s->objects, &o->node);
	return o;
}

void shd_object_put(struct shd *s, struct shd_object *o)
{
	struct shd_want want = {.kind = SHD_WANT_CLOSE, .id = o->id};

	if (--o->users)
		return;
	/* Where that cannot be said the lead counts it as open until this
	 * machine leaves. */
	(void)!shd_lead_want(s->lead, &want);
	list_remove(&o->node);
	free(o);
}

/* ---- its end --------------------------------------------------------------
 */

uint64_t shd_object_end(const struct shd_program *p)
{
	const struct shd_segment *g = p->segment;
	uint64_t count = g->mem.page_count;

	if (p->object && p->object->id == g->id)
		count = u64_min(count, align_up(p->object->length_bytes,
						COHERENCE_PAGE_BYTES) >>
					       COHERENCE_PAGE_SHIFT);
	return g->page + count;
}

void shd_object_measure(struct shd *s, struct shd_object *o)
{
	/* It is open already, so this changes nothing. */
	struct shd_want want = {.kind = SHD_WANT_OPEN, .id = o->id};

	if (!o->is_measured)
		o->is_measured = shd_lead_want(s->lead, &want) == 0;
}

/* Whatever the lead says of an object tells its length. */
static void learn(struct shd *s, const struct shd_got *got)
{
	struct shd_object *o = find(s, got->id);

	if (!o || got->kind == SHD_WANT_CLOSE || got->kind == SHD_WANT_UNLINK)
		return;
	if (!got->err)
		o->length_bytes = u64_max(o->length_bytes, got->length_bytes);
	if (got->serial)
		return;
	o->is_measured = false;
	shd_fault_measured(s, o, got->err);
}

/* ---- placeholders -------------------------------------------------------- */

/* An unlinked file of that length, to hand over; -errno. */
static int make_file(struct shd *s, const struct shd_got *got, int *watch)
{
	char name[64], path[64];
	int file, fd, err = 0;

	(void)snprintf(name, sizeof(name), COHERENT_PLACEHOLDER "%" PRIu64,
		       got->id);
	file = memfd_create(name, MFD_CLOEXEC);
	if (file < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (ftruncate(file, (off_t)got->length_bytes) != 0)
		err = -errno;
	fd = err ? -1 : open(path, O_PATH | O_CLOEXEC);
	if (!err && fd < 0)
		err = -errno;
	*watch = err ? -1 : inotify_add_watch(s->inotify, path, IN_DELETE_SELF);
	if (!err && *watch < 0)
		err = -errno;
	(void)close(file);
	if (err && fd >= 0)
		(void)close(fd);
	return err ? err : fd;
}

static int make_placeholder(struct shd *s, const struct shd_got *got, int *fd)
{
	struct shd_object *o;
	int watch = -1;

	if (s->placeholder_count == SHD_PLACEHOLDERS)
		return -ENFILE;
	*fd = make_file(s, got, &watch);
	if (*fd < 0)
		return *fd;
	o = get(s, got->id);
	if (!o) {
		(void)close(*fd);
		return -ENOMEM;
	}
	s->placeholders[s->placeholder_count++] =
		(struct shd_placeholder){watch, o};
	return 0;
}

static void drop_placeholder(struct shd *s, int watch)
{
	for (uint32_t i = 0; i < s->placeholder_count; i++) {
		struct shd_object *o = s->placeholders[i].object;

		if (s->placeholders[i].watch != watch)
			continue;
		s->placeholders[i] = s->placeholders[--s->placeholder_count];
		shd_object_put(s, o);
		return;
	}
}

void shd_object_read(struct shd *s)
{
	_Alignas(struct inotify_event) char room[4096];
	ssize_t n = read(s->inotify, room, sizeof(room));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e =
			(const struct inotify_event *)(room + at);

		if (e->mask & IN_DELETE_SELF)
			drop_placeholder(s, e->wd);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

/* ---- asking -------------------------------------------------------------- */

int shd_object_ask(struct shd *s, struct shd_program *p,
		   const struct coherent_ask *ask)
{
	struct shd_want want = {
		.kind = ask->kind == COHERENT_FIND     ? SHD_WANT_OPEN
			: ask->kind == COHERENT_RESIZE ? SHD_WANT_RESIZE
						       : SHD_WANT_UNLINK,
		.serial = p->serial,
		.id = ask->id,
		.length_bytes = ask->size_bytes,
		.creates = ask->flags & COHERENT_CREATE,
		.is_exclusive = ask->flags & COHERENT_EXCLUSIVE,
		.wants_two = ask->flags & COHERENT_TWO};
	int err;

	if (p->is_asking || ask->name[COHERENT_NAME_MAX - 1])
		return -EPROTO;
	memcpy(want.name, ask->name, sizeof(want.name));
	if (!want.id && !want.name[0])
		return shd_attach_answer(p, -EINVAL, NULL, NULL, 0);
	err = shd_lead_want(s->lead, &want);
	if (err)
		return shd_attach_answer(p, err, NULL, NULL, 0);
	p->is_asking = true;
	p->is_bare = ask->flags & COHERENT_BARE;
	return 0;
}

static struct shd_program *find_program(struct shd *s, uint64_t serial)
{
	for (struct list *l = s->programs.next; l != &s->programs;
	     l = l->next) {
		struct shd_program *p =
			container_of(l, struct shd_program, node);

		if (p->serial == serial)
			return p;
	}
	return NULL;
}

/* The program uses the object from now on, at least until it hangs up. */
static int use(struct shd *s, struct shd_program *p, const struct shd_got *got)
{
	struct shd_object *o = get(s, got->id);

	if (!o)
		return -ENOMEM;
	if (p->object)
		shd_object_put(s, p->object);
	p->object = o;
	o->length_bytes = u64_max(o->length_bytes, got->length_bytes);
	return 0;
}

static int tell(struct shd *s, struct shd_program *p, const struct shd_got *got)
{
	struct coherent_answer a = {.is_new = got->is_new,
				    .id = got->id,
				    .va = got->va,
				    .length_bytes = got->length_bytes,
				    .reserved_bytes = got->reserved_bytes};
	int fd = -1, err = got->err;

	if (!err && got->kind == SHD_WANT_OPEN) {
		err = use(s, p, got);
		if (!err && !p->is_bare)
			err = make_placeholder(s, got, &fd);
	}
	err = shd_attach_answer(p, err, &a, &fd, fd >= 0);
	if (fd >= 0)
		(void)close(fd);
	return err;
}

void shd_object_got(struct shd *s)
{
	struct shd_got got;

	while (shd_lead_got(s->lead, &got)) {
		struct shd_program *p =
			got.serial ? find_program(s, got.serial) : NULL;

		learn(s, &got);
		if (p && p->is_asking) {
			p->is_asking = false;
			if (tell(s, p, &got))
				shd_attach_broken(s, p);
		} else if (!got.err && got.kind == SHD_WANT_OPEN) {
			struct shd_object *o = get(s, got.id);

			/* Who asked is gone: nobody here uses it. */
			if (o)
				shd_object_put(s, o);
		}
	}
}
