/* SPDX-License-Identifier: Apache-2.0 */
/* The server as a daemon: what it needs before it gives its rights up, and its
 * life until a signal, until nobody uses it, or until it is no member. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "os/slice.h"
#include "shd_priv.h"

enum {
	SPINS = 64,    /* turns without work before it sleeps */
	LOOK_MS = 100, /* between two looks at the keeper, and the longest
			  sleep */
	TIMER_SLACK_NS = 1000,
	MS = 1000000,
};

/* Before anything is given up: the keeper is another process, and userfaultfds
 * are a privilege. */
static int allow(struct daemon *d)
{
	struct shd *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(-ENOMEM, "no memory");
	d->served = s;
	s->daemon = d;
	s->opt = *(const struct shd_options *)d->self;
	s->epoll = s->listen = -1;
	s->sockets.dir_fd = -1;
	list_init(&s->segments);
	list_init(&s->programs);
	list_init(&s->ended);
	list_init(&s->listeners);
	list_init(&s->objects);
	s->inotify = -1;
	s->device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	s->own_uffd = shd_mem_own_uffd();
	if (s->own_uffd < 0)
		return s->own_uffd;
	return shd_keeper_start(&s->keeper, &s->keeper_pid);
}

static int make_counters(struct shd *s)
{
	static const char *const names[] = {
#define SHD_NAME(name, help) #name,
		SHD_COUNTERS(SHD_NAME)
#undef SHD_NAME
	};
	static const char *const helps[] = {
#define SHD_HELP(name, help) help,
		SHD_COUNTERS(SHD_HELP)
#undef SHD_HELP
	};
	int err = counter_file_create(s->daemon->rundir, "shared-cache",
				      SHD_COUNTER_COUNT + 1, 0, &s->counters);

	if (err)
		return error_set(err, "no counters");
	s->c = counter_file_group(s->counters, "shared", names, helps,
				  SHD_COUNTER_COUNT);
	s->cached_bytes = counter_file_gauge(s->counters, "shared.cached_bytes",
					     "bytes", "memory of cached pages");
	return s->c && s->cached_bytes ? 0
				       : error_set(-ENOMEM, "no memory for "
							    "counters");
}

static int make_cache(struct shd *s)
{
	int err;

	s->cache = (struct coh_cache){.lanes = s->lanes,
				      .jobs = s->jobs,
				      .leaves = s->leaves,
				      .first_page = coherence_arena(0) >>
						    COHERENCE_PAGE_SHIFT,
				      .lane_count = COHERENCE_LANES,
				      .job_count = COH_CACHE_JOBS_MAX,
				      .leave_count = SHD_LEAVES};
	err = shd_table_grow(s, shd_lead_size(s->lead));
	if (err)
		return err;
	coh_cache_init(&s->cache);
	s->page_max =
		(s->opt.cache_bytes ? s->opt.cache_bytes : SHD_CACHE_BYTES) >>
		COHERENCE_PAGE_SHIFT;
	return 0;
}

static int watch_all(struct shd *s)
{
	int err;

	s->on_nic.kind = SHD_WATCH_NIC;
	s->on_lead.kind = SHD_WATCH_LEAD;
	s->on_signal.kind = SHD_WATCH_SIGNAL;
	err = shd_watch_add(s, s->nic.channel->fd, &s->on_nic);
	if (!err)
		err = shd_watch_add(s, shd_lead_fd(s->lead), &s->on_lead);
	if (!err)
		err = shd_watch_add(s, s->daemon->signal_fd, &s->on_signal);
	return err;
}

/* The host's name, as far as it is one among members: a host may have none. */
static const char *host_name(struct utsname *host)
{
	char *name = host->nodename;
	size_t n = 0;

	if (uname(host) != 0)
		name[0] = '\0';
	for (const char *c = name; *c; c++)
		if (isalnum((unsigned char)*c) || (n && strchr("-_.", *c)))
			name[n++] = *c;
	name[n] = '\0';
	return n ? name : "machine";
}

static int open_server(struct daemon *d)
{
	struct shd *s = d->served;
	struct utsname host;
	int err;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return error_set(-errno, "epoll: %s", strerror(errno));
	err = make_counters(s);
	if (!err)
		err = shd_lead_open(d->config, d->rundir,
				    d->options.name ? d->options.name
						    : host_name(&host),
				    &s->lead);
	if (!err)
		err = make_cache(s);
	if (!err)
		err = shd_nic_open(&s->nic);
	if (!err)
		err = watch_all(s);
	if (!err)
		err = shd_object_start(s);
	if (!err)
		err = shd_futex_start(s);
	if (!err)
		err = shd_attach_open(s);
	return err ? err : shd_member_start(s);
}

/* Once in a while. */
static void look(struct shd *s, uint64_t now_ns)
{
	struct list *next;

	if (waitpid(s->keeper_pid, NULL, WNOHANG) == s->keeper_pid)
		shd_fail(s, "the keeper was killed");
	for (struct list *l = s->programs.next; l != &s->programs; l = next) {
		struct shd_program *p =
			container_of(l, struct shd_program, node);

		next = l->next;
		if (p->stays && p->sock < 0)
			shd_mem_look(&p->view);
		if (p->has_view && p->view.is_gone)
			shd_attach_end(s, p);
	}
	shd_futex_look(s);
	if (s->program_count || s->placeholder_count ||
	    !list_is_empty(&s->listeners))
		s->used_ns = now_ns;
}

static bool is_idle(const struct shd *s, uint64_t now_ns)
{
	return s->opt.idle_ms &&
	       now_ns - s->used_ns > s->opt.idle_ms * (uint64_t)MS;
}

/* Whether it looks for frames and faults itself instead of being woken for
 * them: while a page is awaited, and while another machine takes one page after
 * the other, or programs touch one after the other. A sleeper is woken by the
 * NIC's thread, which sleeps, too, and whoever waits for the answer waits for
 * both. */
static bool is_looking(const struct shd *s, unsigned idle, uint64_t now_ns)
{
	bool is_waiting = s->wait_count || s->cache.giving || s->held_count;

	return ((is_waiting && idle < SPINS) || now_ns < s->soon_ns) &&
	       !relax_is_crowded();
}

static int run(struct daemon *d)
{
	struct shd *s = d->served;
	uint64_t look_ns = 0;
	bool has_short_slice = false;
	unsigned idle = 0;

	/* A program that spins on a page must not keep its own server from
	 * giving the page up: nobody would get it but that program. */
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS); /* or it is 50 us */
	s->used_ns = clock_mono_ns();
	while (!s->is_over) {
		uint64_t now_ns;

		idle = shd_turn(s) ? 0 : idle + 1;
		now_ns = clock_mono_ns();
		if (now_ns >= look_ns) {
			look_ns = now_ns + LOOK_MS * (uint64_t)MS;
			look(s, now_ns);
			if (daemon_is_ending(d, 0) || is_idle(s, now_ns))
				break;
		}
		if (is_looking(s, idle, now_ns)) {
			slice_set(&has_short_slice, false);
			relax_briefly();
			shd_sleep(s, 0);
		} else {
			slice_set(&has_short_slice, true);
			shd_sleep(s, LOOK_MS * (uint64_t)MS);
		}
	}
	if (s->is_over)
		return error_set(-ESTALE, "shared memory was lost");
	shd_attach_stop(s);
	if (!shd_member_drain(s))
		log_err("shared", "not all stores could be given back");
	return 0;
}

static int close_server(struct daemon *d)
{
	struct shd *s = d->served;
	struct list *next;

	if (!s)
		return 0;
	for (struct list *l = s->programs.next; l != &s->programs; l = next) {
		next = l->next;
		shd_attach_end(s, container_of(l, struct shd_program, node));
	}
	shd_attach_free(s);
	for (struct list *l = s->segments.next; l != &s->segments; l = next) {
		next = l->next;
		shd_segment_destroy(s,
				    container_of(l, struct shd_segment, node));
	}
	shd_object_stop(s);
	shd_futex_stop(s);
	if (s->lead)
		shd_lead_close(s->lead);
	shd_nic_close(&s->nic);
	shd_attach_stop(s);
	rack_sockets_close(&s->sockets);
	if (s->epoll >= 0)
		(void)close(s->epoll);
	if (s->own_uffd >= 0)
		(void)close(s->own_uffd);
	if (s->device >= 0)
		(void)close(s->device);
	if (s->counters)
		counter_file_destroy(s->counters);
	free(s->cache.pages);
	free(s->holds);
	free(s->touched);
	free(s);
	d->served = NULL;
	return 0;
}

const struct daemon_kind shd_daemon = {
	.what = "a cache server",
	.allow = allow,
	.open = open_server,
	.run = run,
	.close = close_server,
};
