/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one measured process, between the conductor's commands. */
#include "side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shield.h"
#include "stats.h"
#include "ticks.h"

enum {
	WARM_UP_PART = 8, /* of the window, before each round */
	NAP_US = 1000,
};

int side_fail(struct side *s, int rc, const char *what)
{
	if (s->why[0] == '\0')
		snprintf(s->why, sizeof(s->why), "%s: %s", what, strerror(-rc));
	return rc;
}

int side_no_setup(struct side *s)
{
	return 0;
}

void side_no_teardown(struct side *s)
{
}

int side_send(int fd, const void *buf, size_t len_bytes)
{
	const char *p = buf;

	while (len_bytes > 0) {
		ssize_t n = send(fd, p, len_bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len_bytes -= (size_t)n;
	}
	return 0;
}

int side_recv(int fd, void *buf, size_t len_bytes)
{
	char *p = buf;

	while (len_bytes > 0) {
		ssize_t n = recv(fd, p, len_bytes, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		p += n;
		len_bytes -= (size_t)n;
	}
	return 0;
}

int side_exchange(struct side *s, const void *mine, void *peer,
		  size_t len_bytes)
{
	int rc = side_send(s->peer_fd, mine, len_bytes);

	if (rc == 0)
		rc = side_recv(s->peer_fd, peer, len_bytes);
	return rc < 0 ? side_fail(s, rc, "hello") : 0;
}

int side_meet(struct side *s)
{
	char token = 'c', answer;

	return side_exchange(s, &token, &answer, sizeof(token));
}

void side_buffer_fill(uint8_t *buf, uint32_t block)
{
	uint32_t len = side_buffer_bytes(block);

	for (uint64_t off = 0; off < len; off += block) {
		uint64_t word = ~off;

		memset(buf + off, (int)(off / block), block);
		memcpy(buf + off, &word, sizeof(word));
	}
}

static void summarize(const struct side *s, struct side_result *r)
{
	for (unsigned i = 0; i < SIDE_SERIES_MAX; i++) {
		const struct side_samples *v = &s->samples[i];
		struct side_series *out = &r->series[i];
		size_t n = v->count < SIDE_SAMPLES_MAX ? (size_t)v->count
						       : SIDE_SAMPLES_MAX;

		out->count = v->count;
		out->p50_ns = stats_center_u32(v->ticks, n, s->tick_step + 2) /
			      s->ticks_per_ns;
		out->p99_ns =
			stats_quantile_u32(v->ticks, n, 0.99) / s->ticks_per_ns;
		out->p999_ns = stats_quantile_u32(v->ticks, n, 0.999) /
			       s->ticks_per_ns;
	}
}

static int measure_once(struct side *s, const struct side_ops *ops,
			uint64_t window_ns, struct side_result *r)
{
	uint64_t t0;
	int rc;

	for (unsigned i = 0; i < SIDE_SERIES_MAX; i++)
		s->samples[i].count = 0;
	t0 = bench_now_ns();
	rc = ops->measure(s, window_ns, r);
	r->elapsed_ns = bench_now_ns() - t0;
	return rc;
}

static void run_round(struct side *s, const struct side_ops *ops,
		      uint64_t window_ns, struct side_result *r)
{
	uint64_t warm_ops;

	if (s->role != SIDE_CLIENT) {
		int (*serve)(struct side *) =
			s->role == SIDE_SERVER ? ops->serve : ops->forward;

		r->status = serve ? serve(s) : 0;
		return;
	}
	r->status = measure_once(s, ops, window_ns / WARM_UP_PART, r);
	warm_ops = r->ops;
	if (r->status == 0)
		r->status = measure_once(s, ops, window_ns, r);
	r->ops_all = r->ops + warm_ops;
	if (r->status == 0)
		summarize(s, r);
}

static int side_open(struct side *s, int page_fd)
{
	uint8_t *m;

	m = mmap(NULL, SIDE_PAGE_BYTES + SIDE_SHARED_BYTES,
		 PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
	if (m == MAP_FAILED)
		return side_fail(s, -errno, "mmap");
	s->page = (struct side_page *)m;
	s->shared = m + SIDE_PAGE_BYTES;
	s->ticks_per_ns = bench_ticks_per_ns();
	s->tick_step = bench_tick_step();
	for (unsigned i = 0; i < SIDE_SERIES_MAX; i++) {
		uint32_t *v = malloc(SIDE_SAMPLES_MAX * sizeof(*v));

		if (!v)
			return side_fail(s, -ENOMEM, "samples");
		/* Touched now: a page fault in a round is not ours to count. */
		memset(v, 0xff, SIDE_SAMPLES_MAX * sizeof(*v));
		s->samples[i].ticks = v;
	}
	return 0;
}

static int answer(struct side *s, struct side_result *r,
		  enum shield_kind shield)
{
	r->shield = (uint32_t)shield;
	memcpy(r->why, s->why, sizeof(r->why));
	return side_send(s->ctl_fd, r, sizeof(*r));
}

/* Where there is one core only, everything runs on that; the report says how
 * many there are. */
static void pin(int cpu)
{
	if (shield_pin(cpu) < 0)
		(void)shield_pin(SHIELD_CPU_CLIENT);
}

static void leave(const struct side_ops *ops)
{
	if (ops->is_shared)
		shield_leave_process(getpid());
	else
		shield_leave();
}

/* Set-up, on the core and with the priority that the side then has. */
static enum shield_kind set_up(struct side *s, const struct side_ops *ops,
			       struct side_result *r, bool is_plain)
{
	enum shield_kind shield = SHIELD_NONE;

	/* While others serve our set-up with an ordinary priority, so do we:
	 * they could not answer one that spins on their core. */
	if (!is_plain)
		shield = ops->is_shared ? shield_enter_nice() : shield_enter();
	if (r->status == 0)
		r->status = ops->setup(s);
	if (is_plain)
		return shield;
	if (s->role == SIDE_CLIENT)
		pin(SHIELD_CPU_CLIENT);
	return ops->is_shared && shield_enter_process(getpid()) ? SHIELD_FIFO
								: shield;
}

/*
 * Whoever the conductor wakes up is often put on its core. For sides with a
 * core of their own that makes no difference; others would all be on one, and
 * wait for each other instead of working side by side. So they look, and nap.
 */
static int next_command(int ctl_fd, bool is_plain, struct side_command *cmd)
{
	char c;

	while (is_plain && recv(ctl_fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN)
		(void)usleep(NAP_US);
	return side_recv(ctl_fd, cmd, sizeof(*cmd));
}

int side_main(const struct side_ops *ops, const void *param,
	      enum side_role role, int ctl_fd, int peer_fd, int page_fd,
	      bool is_plain)
{
	struct side s = {.role = role,
			 .ctl_fd = ctl_fd,
			 .peer_fd = peer_fd,
			 .param = param};
	struct side_result r = {0};
	struct side_command cmd;
	enum shield_kind shield;

	if (!is_plain)
		pin(role == SIDE_CLIENT && !ops->is_shared ? SHIELD_CPU_CLIENT
							   : SHIELD_CPU_SERVER);
	r.status = side_open(&s, page_fd);
	shield = set_up(&s, ops, &r, is_plain);
	if (answer(&s, &r, shield) < 0 || r.status < 0) {
		leave(ops);
		return 1;
	}
	while (next_command(ctl_fd, is_plain, &cmd) == 0 && cmd.run) {
		memset(&r, 0, sizeof(r));
		run_round(&s, ops, cmd.window_ns, &r);
		if (answer(&s, &r, shield) < 0 || r.status < 0) {
			leave(ops);
			return 1;
		}
	}
	leave(ops);
	ops->teardown(&s);
	for (unsigned i = 0; i < SIDE_SERIES_MAX; i++)
		free(s.samples[i].ticks);
	return 0;
}
