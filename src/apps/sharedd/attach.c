/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that attach, ask and go (coherent/channel.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/log.h"
#include "shd_priv.h"

int shd_watch_add(struct shd *s, int fd, struct shd_watch *w)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = w};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0
		       ? 0
		       : error_set(-errno, "epoll: %s", strerror(errno));
}

int shd_attach_open(struct shd *s)
{
	int lock, fd, err = coherent_socket_name(s->socket);

	if (!err)
		err = rack_sockets_open(s->daemon->rack, &s->sockets);
	if (err)
		return err;
	fd = rack_socket_begin(&s->sockets, &lock);
	if (fd < 0)
		return error_set(fd, "no socket: %s", strerror(-fd));
	err = rack_socket_bind(&s->sockets, s->socket, fd);
	if (!err && listen(fd, SOMAXCONN) != 0)
		err = -errno;
	err = rack_socket_end(&s->sockets, lock, fd, err, &s->listen);
	if (err)
		return error_set(err, "%s",
				 err == -EADDRINUSE
					 ? "this machine has a cache server "
					   "for this rack already"
					 : strerror(-err));
	s->on_listen = (struct shd_watch){.kind = SHD_WATCH_LISTEN};
	return shd_watch_add(s, s->listen, &s->on_listen);
}

void shd_attach_stop(struct shd *s)
{
	if (s->listen < 0)
		return;
	rack_socket_release(&s->sockets, s->socket, s->listen);
	s->listen = -1;
}

/* Only this user's programs, and root's: all have the rights of our token. */
static bool is_ours(int fd, pid_t *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return false;
	*pid = cred.pid;
	return cred.uid == geteuid() || cred.uid == 0;
}

void shd_attach_accept(struct shd *s)
{
	int fd = accept4(s->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shd_program *p;
	pid_t pid;

	if (fd < 0)
		return;
	p = s->program_count < SHD_PROGRAMS && is_ours(fd, &pid)
		    ? calloc(1, sizeof(*p))
		    : NULL;
	if (!p) {
		(void)close(fd);
		return;
	}
	p->sock = fd;
	p->pid = pid;
	p->serial = ++s->last_serial;
	if (clock_getcpuclockid(pid, &p->clock) != 0)
		p->clock = 0;
	p->on_sock = (struct shd_watch){SHD_WATCH_SOCKET, p};
	p->on_uffd = (struct shd_watch){SHD_WATCH_UFFD, p};
	if (shd_watch_add(s, fd, &p->on_sock)) {
		(void)close(fd);
		free(p);
		return;
	}
	list_append(&s->programs, &p->node);
	s->program_count++;
}

static void close_socket(struct shd *s, struct shd_program *p)
{
	if (p->sock < 0)
		return;
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->sock, NULL);
	(void)close(p->sock);
	p->sock = -1;
}

void shd_attach_end(struct shd *s, struct shd_program *p)
{
	shd_fault_forget(s, p);
	if (p->has_view) {
		(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->view.uffd, NULL);
		shd_mem_drop(&p->segment->mem, &p->view);
	}
	close_socket(s, p);
	if (p->segment)
		shd_segment_put(s, p->segment);
	if (p->object)
		shd_object_put(s, p->object);
	list_remove(&p->node);
	s->program_count--;
	s->used_ns = clock_mono_ns();
	p->is_ended = true;
	list_append(&s->ended, &p->node);
}

void shd_attach_broken(struct shd *s, struct shd_program *p)
{
	if (p->stays)
		close_socket(s, p);
	else
		shd_attach_end(s, p);
}

void shd_attach_free(struct shd *s)
{
	struct list *next;

	for (struct list *l = s->ended.next; l != &s->ended; l = next) {
		next = l->next;
		free(container_of(l, struct shd_program, node));
	}
	list_init(&s->ended);
}

/* ---- asks ---------------------------------------------------------------- */

int shd_attach_answer(const struct shd_program *p, int err,
		      const struct coherent_answer *with, const int *fd,
		      unsigned count)
{
	struct coherent_answer a = with ? *with : (struct coherent_answer){0};

	a.magic = COHERENT_MAGIC;
	a.err = err;
	return fds_send(p->sock, &a, sizeof(a), fd, count, MSG_DONTWAIT);
}

static int open_segment(struct shd *s, struct shd_program *p,
			const struct coherent_ask *ask)
{
	int err = p->segment ? -EEXIST
			     : shd_segment_get(s, ask->va, ask->size_bytes,
					       ask->id, &p->segment);
	struct coherent_answer a = {.has_device = s->device >= 0};
	int fd[2];

	if (err)
		return shd_attach_answer(p, err, NULL, NULL, 0);
	fd[0] = p->segment->mem.fd;
	fd[1] = s->device;
	return shd_attach_answer(p, 0, &a, fd, a.has_device ? 2 : 1);
}

static bool is_part(const struct shd_segment *g, const struct coherent_ask *ask)
{
	uint64_t size_bytes = (uint64_t)g->mem.page_count
			      << COHERENCE_PAGE_SHIFT;

	return !((ask->va | ask->offset | ask->size_bytes) %
		 COHERENCE_PAGE_BYTES) &&
	       ask->size_bytes && ask->size_bytes <= size_bytes &&
	       ask->offset <= size_bytes - ask->size_bytes;
}

/* The userfaultfd is ours from here on. */
static int take_view(struct shd *s, struct shd_program *p,
		     const struct coherent_ask *ask, int uffd)
{
	int err;

	if (uffd < 0)
		return -EPROTO;
	if (!p->segment || p->has_view || !is_part(p->segment, ask)) {
		(void)close(uffd);
		return -EPROTO;
	}
	err = shd_mem_add(&p->segment->mem, &p->view, uffd, ask->va,
			  (uint32_t)(ask->offset >> COHERENCE_PAGE_SHIFT),
			  (uint32_t)(ask->size_bytes >> COHERENCE_PAGE_SHIFT));
	if (!err)
		err = shd_watch_add(s, uffd, &p->on_uffd);
	if (err) {
		shd_mem_drop(&p->segment->mem, &p->view);
		return shd_attach_answer(p, err, NULL, NULL, 0);
	}
	p->has_view = true;
	p->stays = ask->flags & COHERENT_STAYS;
	return shd_attach_answer(p, 0, NULL, NULL, 0);
}

/* A process has unmapped memory: mappings of which nothing is left end. */
static int end_views(struct shd *s, const struct shd_program *asker,
		     const struct coherent_ask *ask)
{
	struct list *next;

	for (struct list *l = s->programs.next; l != &s->programs; l = next) {
		struct shd_program *p =
			container_of(l, struct shd_program, node);
		uint64_t from, size_bytes;

		next = l->next;
		if (p == asker || p->pid != asker->pid || !p->stays)
			continue;
		from = p->view.base +
		       ((uint64_t)p->view.first << COHERENCE_PAGE_SHIFT);
		size_bytes = (uint64_t)p->view.count << COHERENCE_PAGE_SHIFT;
		if (from >= ask->va && size_bytes <= ask->size_bytes &&
		    from - ask->va <= ask->size_bytes - size_bytes)
			shd_attach_end(s, p);
	}
	return shd_attach_answer(asker, 0, NULL, NULL, 0);
}

int shd_program_range(const struct shd_program *p,
		      const struct coherent_ask *ask, struct shd_range *out)
{
	const struct shd_segment *g = p->segment;

	*out = (struct shd_range){
		ask->va >> COHERENCE_PAGE_SHIFT,
		(ask->va + ask->size_bytes + COHERENCE_PAGE_BYTES - 1) >>
			COHERENCE_PAGE_SHIFT};
	return g && out->from >= g->page && out->end >= out->from &&
			       out->end - g->page <= g->mem.page_count
		       ? 0
		       : -ERANGE;
}

static int flush(struct shd *s, struct shd_program *p,
		 const struct coherent_ask *ask)
{
	struct shd_range r;

	if (p->is_flushing || shd_program_range(p, ask, &r))
		return shd_attach_answer(p, -ERANGE, NULL, NULL, 0);
	p->is_flushing = true;
	p->flush_from = p->flush_sent = p->flush_done = r.from;
	p->flush_end = r.end;
	shd_flush_run(s, false);
	return 0;
}

static int stat_segment(const struct shd_program *p)
{
	const struct shd_segment *g = p->segment;
	struct coherent_answer a;

	if (!g)
		return -EPROTO;
	a = (struct coherent_answer){.cached_bytes = (uint64_t)g->mem.here_count
						     << COHERENCE_PAGE_SHIFT,
				     .faults = g->faults,
				     .gets = g->gets,
				     .invals = g->invals,
				     .gives = g->gives};
	return shd_attach_answer(p, 0, &a, NULL, 0);
}

static int do_ask(struct shd *s, struct shd_program *p,
		  const struct coherent_ask *ask, int fd)
{
	if (ask->kind == COHERENT_MAPPED)
		return take_view(s, p, ask, fd);
	if (ask->kind == COHERENT_LISTEN && fd >= 0)
		return shd_attach_answer(
			p, shd_futex_listen(s, p->pid, ask->va, fd), NULL, NULL,
			0);
	if (fd >= 0) {
		(void)close(fd);
		return -EPROTO;
	}
	switch ((enum coherent_ask_kind)ask->kind) {
	case COHERENT_OPEN:
		return open_segment(s, p, ask);
	case COHERENT_FLUSH:
		return flush(s, p, ask);
	case COHERENT_FETCH_READ:
	case COHERENT_FETCH_WRITE:
		return shd_fetch_ask(s, p, ask);
	case COHERENT_STAT:
		return stat_segment(p);
	case COHERENT_FIND:
	case COHERENT_RESIZE:
	case COHERENT_UNLINK:
		return shd_object_ask(s, p, ask);
	case COHERENT_UNMAP:
		return end_views(s, p, ask);
	case COHERENT_HELD:
		return shd_held_answer(s, p);
	case COHERENT_MAPPED:
	case COHERENT_LISTEN:
		break;
	}
	return -EPROTO;
}

void shd_attach_read(struct shd *s, struct shd_program *p)
{
	struct coherent_ask ask;
	unsigned count = 0;
	int fd = -1;
	int err = fds_receive(p->sock, &ask, sizeof(ask), &fd, 1, &count,
			      MSG_DONTWAIT);

	if (err == -EAGAIN)
		return;
	if (!err)
		err = ask.magic == COHERENT_MAGIC
			      ? do_ask(s, p, &ask, count ? fd : -1)
			      : -EPROTO;
	if (err)
		shd_attach_broken(s, p);
}

/* ---- flushes ------------------------------------------------------------- */

static bool run_flush(struct shd *s, struct shd_program *p)
{
	while (p->flush_sent < p->flush_end) {
		const struct coh_cache_page *page =
			&s->cache.pages[p->flush_sent - s->cache.first_page];

		if (page->dirty && !page->giving) {
			if (s->cache.giving == COH_CACHE_GIVES_MAX ||
			    s->cache.link != COH_CACHE_MEMBER)
				break;
			/* -EBUSY: it has begun. */
			(void)!coh_cache_flush(&s->cache, p->flush_sent,
					       &s->out);
			shd_act(s, -1);
		}
		p->flush_sent++;
	}
	while (p->flush_done < p->flush_sent &&
	       !s->cache.pages[p->flush_done - s->cache.first_page].giving)
		p->flush_done++;
	return p->flush_done == p->flush_end;
}

void shd_flush_run(struct shd *s, bool from_start)
{
	for (struct list *l = s->programs.next; l != &s->programs;
	     l = l->next) {
		struct shd_program *p =
			container_of(l, struct shd_program, node);

		if (!p->is_flushing)
			continue;
		if (from_start)
			p->flush_sent = p->flush_done = p->flush_from;
		else if (run_flush(s, p)) {
			p->is_flushing = false;
			/* Who is gone is noticed by its socket. */
			(void)!shd_attach_answer(p, 0, NULL, NULL, 0);
		}
	}
}
