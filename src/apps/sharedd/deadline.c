/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a held WAIT ends: a timespec of the program. In its private memory the
 * keeper reads it. In shared memory the keeper would wait for a page that only
 * we can bring, so it is read like the word that is slept on: from a copy of
 * the page, once that is here.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "shd_priv.h"

#define SECOND_NS 1000000000ull

bool shd_is_shared(uint64_t addr)
{
	return addr - COHERENCE_BASE < COHERENCE_WINDOW;
}

int shd_shared_read(struct shd *s, uint64_t addr, void *out, size_t len_bytes,
		    uint64_t *missing)
{
	uint64_t at = (addr - COHERENCE_BASE) % (1ull << COHERENCE_NODE_SHIFT);
	uint8_t *to = out;

	while (len_bytes) {
		uint64_t page =
			s->cache.first_page + (at >> COHERENCE_PAGE_SHIFT);
		const struct shd_segment *g = shd_segment_of(s, page);
		uint64_t rest =
			COHERENCE_PAGE_BYTES - at % COHERENCE_PAGE_BYTES;
		size_t part = (size_t)u64_min(rest, len_bytes);
		uint64_t in_file;

		if (!g)
			return -EFAULT;
		*missing = page;
		if (s->cache.suspended ||
		    !shd_mem_has(&g->mem, (uint32_t)(page - g->page)))
			return -EAGAIN;
		in_file = (page - g->page) << COHERENCE_PAGE_SHIFT |
			  at % COHERENCE_PAGE_BYTES;
		if (pread(g->mem.fd, to, part, (off_t)in_file) != (ssize_t)part)
			return -EAGAIN;
		to += part;
		at += part;
		len_bytes -= part;
	}
	return 0;
}

static uint64_t real_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* In our clock. */
static int take(struct shd_deadline *d, const uint64_t words[2])
{
	uint64_t now_ns = clock_mono_ns(), then_ns;

	if (words[0] > INT64_MAX / SECOND_NS || words[1] >= SECOND_NS)
		return -EINVAL;
	then_ns = words[0] * SECOND_NS + words[1];
	if (!d->is_absolute) {
		d->ns = now_ns + then_ns;
		return 0;
	}
	if (d->is_real) {
		uint64_t is_ns = real_ns();

		then_ns = then_ns > is_ns ? now_ns + (then_ns - is_ns) : 1;
	}
	d->ns = u64_max(then_ns, 1);
	return 0;
}

int shd_deadline_read(struct shd *s, struct shd_deadline *d)
{
	uint64_t words[2];
	int err = shd_shared_read(s, d->addr, words, sizeof(words), &d->page);

	if (err)
		return err;
	d->is_awaited = false;
	return take(d, words);
}

int shd_deadline_find(struct shd *s, const struct seccomp_notif *n,
		      struct shd_deadline *out)
{
	uint64_t words[2];
	int err;

	*out = (struct shd_deadline){
		.addr = n->data.args[3],
		.is_real = n->data.args[1] & FUTEX_CLOCK_REALTIME,
		.is_absolute =
			(n->data.args[1] & FUTEX_CMD_MASK) != FUTEX_WAIT};
	if (!out->addr)
		return 0;
	if (shd_is_shared(out->addr)) {
		out->is_awaited = true;
		err = shd_deadline_read(s, out);
		return err == -EAGAIN ? 0 : err;
	}
	err = shd_keeper_read(s->keeper, (pid_t)n->pid, out->addr, words);
	return err ? err : take(out, words);
}
