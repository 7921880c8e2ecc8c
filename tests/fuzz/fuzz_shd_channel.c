/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a local program sends to its machine's cache server
 * (coherent/channel.h): questions of all kinds with numbers near and far beyond
 * what there is, descriptors of any kind, messages of any length, hanging up in
 * the middle; beside a lead that answers late and with anything, and a switch
 * that takes pages back or refuses them. After every step the server's lists
 * and counts must agree, each answer is a whole one, and a mapping that stays
 * is served until its program says that it has unmapped it: one that is given
 * up reads zeros.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fds.h"
#include "base/uffd_new.h"
#include "fuzz.h"
#include "fuzz_count.h"
#include "shd_world.h"

enum {
	CONNECTIONS = 6,
	STEPS_MAX = 256,
	MAPPINGS = 16,
	PAGE = COHERENCE_PAGE_BYTES,
};

enum step {
	STEP_ASK,
	STEP_TURN,
	STEP_CONNECT,
	STEP_HANG_UP,
	STEP_BYTES,
	STEP_LEAD,
	STEP_INVAL,
	STEP_REFUSE,
	STEPS,
};

/* Which descriptor goes with a question. */
enum with {
	WITH_NONE,
	WITH_EVENT,
	WITH_FILE,
	WITH_UFFD,    /* of nothing */
	WITH_MAPPING, /* of the segment, as a program makes it */
	WITH_SOCKET,
	WITH_TWO,
	WITH_COUNT,
};

struct fuzz {
	const uint8_t *at;
	size_t left;
	struct world *w;
	int sock[CONNECTIONS]; /* or -1 */
	int file[CONNECTIONS]; /* that OPEN was answered with, or -1 */
	struct {
		void *at;
		size_t len;
	} mapping[MAPPINGS];
	unsigned mapping_count;
	unsigned staying;
	bool may_end; /* an UNMAP was sent, which may come later */
};

static uint8_t next_u8(struct fuzz *f)
{
	if (!f->left)
		return 0;
	f->left--;
	return *f->at++;
}

/* ---- what must be so ----------------------------------------------------- */

static unsigned length_of(const struct list *list)
{
	unsigned n = 0;

	for (const struct list *l = list->next; l != list; l = l->next)
		n++;
	return n;
}

static unsigned users_of_segment(struct shd *s, const struct shd_segment *g)
{
	unsigned n = 0;

	for (struct list *l = s->programs.next; l != &s->programs; l = l->next)
		n += container_of(l, struct shd_program, node)->segment == g;
	return n;
}

static unsigned users_of_object(struct shd *s, const struct shd_object *o)
{
	unsigned n = 0;

	for (struct list *l = s->programs.next; l != &s->programs; l = l->next)
		n += container_of(l, struct shd_program, node)->object == o;
	for (uint32_t i = 0; i < s->placeholder_count; i++)
		n += s->placeholders[i].object == o;
	return n;
}

/* Nothing is unmapped here, so none of them is gone. */
static void check_staying(struct fuzz *f)
{
	struct shd *s = &f->w->s;
	unsigned n = 0;

	for (struct list *l = s->programs.next; l != &s->programs; l = l->next)
		n += container_of(l, struct shd_program, node)->stays;
	ASSERT(n >= f->staying || f->may_end);
	f->staying = n;
}

static void check(struct fuzz *f)
{
	struct shd *s = &f->w->s;
	uint64_t pages = 0;

	check_staying(f);

	ASSERT(length_of(&s->programs) == s->program_count);
	ASSERT(length_of(&s->listeners) == s->listener_count);
	for (struct list *l = s->segments.next; l != &s->segments;
	     l = l->next) {
		struct shd_segment *g =
			container_of(l, struct shd_segment, node);

		ASSERT(g->users == users_of_segment(s, g));
		pages += g->mem.here_count;
	}
	ASSERT(s->is_over || pages == s->page_count);
	for (struct list *l = s->objects.next; l != &s->objects; l = l->next) {
		struct shd_object *o = container_of(l, struct shd_object, node);

		ASSERT(o->users && o->users == users_of_object(s, o));
	}
	ASSERT(s->is_over || !coh_cache_check(&s->cache));
}

/* ---- the program --------------------------------------------------------- */

static void hang_up(struct fuzz *f, unsigned i)
{
	if (f->sock[i] >= 0)
		(void)close(f->sock[i]);
	if (f->file[i] >= 0)
		(void)close(f->file[i]);
	f->sock[i] = f->file[i] = -1;
}

static void connect_one(struct fuzz *f, unsigned i)
{
	hang_up(f, i);
	f->sock[i] = socket(AF_UNIX,
			    SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ASSERT(f->sock[i] >= 0);
	if (connect(f->sock[i], (struct sockaddr *)&f->w->at, f->w->at_len))
		hang_up(f, i);
	shd_attach_accept(&f->w->s);
}

/* Not a placeholder, and not the list of what the cache has. */
static bool is_memory(int fd)
{
	struct stat st;

	return !(fcntl(fd, F_GETFL) & O_PATH) && fstat(fd, &st) == 0 &&
	       st.st_size % PAGE == 0;
}

/* What has come. A program keeps the file of its memory, and lets go of
 * everything else. */
static void read_answers(struct fuzz *f, unsigned i)
{
	struct coherent_answer a;
	unsigned count;
	int fd[2];

	while (f->sock[i] >= 0 && !fds_receive(f->sock[i], &a, sizeof(a), fd, 2,
					       &count, MSG_DONTWAIT)) {
		ASSERT(a.magic == COHERENT_MAGIC && a.err <= 0);
		for (unsigned n = 0; n < count; n++)
			if (f->file[i] < 0 && is_memory(fd[n]))
				f->file[i] = fd[n];
			else
				(void)close(fd[n]);
	}
}

static int map_segment(struct fuzz *f, unsigned i, struct coherent_ask *ask)
{
	void *at;

	if (f->file[i] < 0 || f->mapping_count == MAPPINGS ||
	    !ask->size_bytes || ask->size_bytes > WORLD_PAGES * PAGE)
		return -1;
	at = mmap(NULL, ask->size_bytes, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_NORESERVE, f->file[i], (off_t)ask->offset);
	if (at == MAP_FAILED)
		return -1;
	f->mapping[f->mapping_count].at = at;
	f->mapping[f->mapping_count++].len = ask->size_bytes;
	ask->va = (uint64_t)(uintptr_t)at;
	return uffd_new(-1);
}

static int make_fd(struct fuzz *f, unsigned i, enum with with,
		   struct coherent_ask *ask)
{
	switch (with) {
	case WITH_EVENT:
	case WITH_TWO:
		return eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	case WITH_FILE:
		return memfd_create("fuzz", MFD_CLOEXEC);
	case WITH_UFFD:
		return uffd_new(-1);
	case WITH_MAPPING:
		return map_segment(f, i, ask);
	case WITH_SOCKET:
		return dup(f->sock[i]);
	case WITH_NONE:
	case WITH_COUNT:
		break;
	}
	return -1;
}

/* A number of pages, mostly; sometimes anything. */
static uint64_t number(struct fuzz *f, uint64_t base)
{
	static const uint64_t odd[] = {
		0,	   1,	       PAGE - 1,   1ull << 40,
		INT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX - PAGE + 1};
	uint8_t v = next_u8(f);

	if (v >= 248)
		return odd[v - 248];
	/* Small numbers, then the ends of regions and of the arena. */
	return base + (v < 64 ? v : (uint64_t)(v - 63) * 8) * PAGE;
}

static void ask(struct fuzz *f)
{
	unsigned i = next_u8(f) % CONNECTIONS;
	struct coherent_ask ask = {.magic = COHERENT_MAGIC,
				   .kind = next_u8(f) % 14};
	uint8_t how = next_u8(f);
	enum with with = (enum with)(how % WITH_COUNT);
	int fd[2];

	if (f->sock[i] < 0)
		connect_one(f, i);
	ask.va = number(f, coherence_arena(0));
	ask.size_bytes = number(f, 0);
	ask.id = next_u8(f) % 4;
	ask.offset = number(f, 0);
	ask.flags = how >> 4;
	ask.name[0] = (char)(next_u8(f) % 3 ? 'n' : 0);
	ask.name[1] = (char)(ask.name[0] ? 'a' + next_u8(f) % 2 : 0);
	if (how == 255)
		memset(ask.name, 'x', sizeof(ask.name));
	if (ask.kind == COHERENT_UNMAP && f->mapping_count)
		ask.va = (uint64_t)(uintptr_t)f->mapping[ask.id].at;
	f->may_end |= ask.kind == COHERENT_UNMAP;
	fd[0] = fd[1] = make_fd(f, i, with, &ask);
	(void)!fds_send(f->sock[i], &ask, sizeof(ask), fd,
			fd[0] < 0 ? 0 : 1 + (with == WITH_TWO), MSG_DONTWAIT);
	if (fd[0] >= 0)
		(void)close(fd[0]);
}

static void send_bytes(struct fuzz *f)
{
	unsigned i = next_u8(f) % CONNECTIONS;
	size_t len = next_u8(f);

	len = len < f->left ? len : f->left;
	if (f->sock[i] < 0)
		connect_one(f, i);
	(void)!send(f->sock[i], f->at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	f->may_end |= len == sizeof(struct coherent_ask);
	f->at += len;
	f->left -= len;
}

/* ---- the others ---------------------------------------------------------- */

static void answer_of_lead(struct fuzz *f)
{
	struct shd_lead *l = &f->w->lead;
	uint8_t how = next_u8(f);
	struct shd_want want;
	struct shd_got got;

	if (!l->wants || l->gots == WORLD_WANTS)
		return;
	want = l->want[0];
	memmove(l->want, l->want + 1, --l->wants * sizeof(want));
	got = (struct shd_got){.kind = want.kind,
			       .serial = want.serial,
			       .id = want.id,
			       .err = how % 4 == 3 ? -ENOENT : 0};
	if (!got.err &&
	    (want.kind == SHD_WANT_OPEN || want.kind == SHD_WANT_RESIZE)) {
		got.id = want.id ? want.id : 1u + (how >> 2) % 3u;
		got.va = coherence_arena(0);
		got.length_bytes = number(f, 0);
		got.reserved_bytes = number(f, 0);
	}
	l->got[l->gots++] = got;
	shd_object_got(&f->w->s);
}

static void inval(struct fuzz *f)
{
	struct shd *s = &f->w->s;
	uint8_t count = next_u8(f), to = next_u8(f);
	struct world *w = f->w;
	struct coh_inval i = {
		.range = {s->cache.first_page + (next_u8(f) & ~3u) * 4,
			  1u << count % 5},
		.to = to % 2 ? COH_READ : COH_NONE};

	i.range.page &= ~(uint64_t)(i.range.count - 1);
	i.target = i.range.page;
	if (w->done_end - w->done_begin == WORLD_DONES / 2)
		return;
	w->done[w->done_end++ % WORLD_DONES] = (struct shd_done){
		.kind = SHD_DONE_RECORD,
		.record = {.kind = COHERENCE_INVAL, .inval = i}};
}

static void turn(struct fuzz *f)
{
	struct shd *s = &f->w->s;

	shd_sleep(s, 0);
	(void)shd_turn(s);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		read_answers(f, i);
}

static void step(struct fuzz *f)
{
	switch ((enum step)(next_u8(f) % STEPS)) {
	case STEP_ASK:
		ask(f);
		turn(f);
		break;
	case STEP_TURN:
		turn(f);
		break;
	case STEP_CONNECT:
		connect_one(f, next_u8(f) % CONNECTIONS);
		break;
	case STEP_HANG_UP:
		hang_up(f, next_u8(f) % CONNECTIONS);
		break;
	case STEP_BYTES:
		send_bytes(f);
		break;
	case STEP_LEAD:
		answer_of_lead(f);
		break;
	case STEP_INVAL:
		inval(f);
		break;
	case STEP_REFUSE:
		f->w->refuses = next_u8(f) % 2;
		break;
	case STEPS:
		break;
	}
	fuzz_operations++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct fuzz f = {.at = data, .left = len_bytes};
	bool has_pause = next_u8(&f) % 2;

	f.w = world_open(has_pause ? 8 : WORLD_PAGES);
	if (!f.w) {
		fprintf(stderr, "no userfaultfd: nothing was tried\n");
		return 0;
	}
	for (unsigned i = 0; i < CONNECTIONS; i++)
		f.sock[i] = f.file[i] = -1;
	for (unsigned i = 0; f.left && i < STEPS_MAX; i++) {
		step(&f);
		check(&f);
	}
	for (unsigned i = 0; i < CONNECTIONS; i++)
		hang_up(&f, i);
	turn(&f);
	check(&f);
	for (unsigned i = 0; i < f.mapping_count; i++)
		(void)munmap(f.mapping[i].at, f.mapping[i].len);
	world_close(f.w);
	return 0;
}
